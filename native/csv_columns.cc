#include "csv_columns.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>

#include "parallel.h"
#include "text_numbers.h"

namespace datum {
namespace {

constexpr int64_t kMaxExact = int64_t{1} << 53;
constexpr size_t kTalliedOdd = 64;  // odd cells of a chunk after which a column is text

// Returns 1 or 0 for the words of a boolean, -1 for any other.
int read_bool(ByteSpan text) {
  const std::string_view view = as_view(text);
  if (view == "true" || view == "True" || view == "TRUE") return 1;
  return view == "false" || view == "False" || view == "FALSE" ? 0 : -1;
}

// Numbers of one chunk, integers until the first float.
class Numbers {
 public:
  explicit Numbers(uint8_t* out) : out_(out) {}

  uint32_t add(const Number& number) {
    if (number.kind == NumberKind::kInteger) {
      is_double_ ? store(number.real) : store(number.integer);
      return number.integer > kMaxExact || number.integer < -kMaxExact ? kSeenWide : kSeenInteger;
    }
    if (!is_double_) make_double();
    store(number.real);
    return kSeenFloat;
  }

  void add_bool(int value) { store(static_cast<int64_t>(value)); }
  void skip() { store(int64_t{0}); }  // a zero of either type

 private:
  template <typename T>
  void store(T value) {
    std::memcpy(out_ + 8 * count_++, &value, 8);
  }

  void make_double();

  uint8_t* out_;
  size_t count_ = 0;
  bool is_double_ = false;
};

void integers_to_doubles(uint8_t* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    int64_t integer;
    std::memcpy(&integer, values + 8 * i, 8);
    const auto real = static_cast<double>(integer);
    std::memcpy(values + 8 * i, &real, 8);
  }
}

void Numbers::make_double() {
  integers_to_doubles(out_, count_);
  is_double_ = true;
}

// Returns whether all are digits, the first of them a zero.
bool is_code(ByteSpan text) {
  return text.size() > 1 && text[0] == '0' && std::all_of(text.begin(), text.end(), [](uint8_t c) {
           return static_cast<uint8_t>(c - '0') < 10;
         });
}

uint32_t seen_of(CsvType wanted) {
  if (wanted == CsvType::kBool) return kSeenBool;
  return wanted == CsvType::kInt64 ? kSeenInteger : kSeenFloat;
}

// Returns 1 or 0 for a boolean where one was requested, -1 for anything else.
int read_wanted_bool(ByteSpan text) {
  std::string word(as_view(text));
  for (char& letter : word) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  for (const std::string_view yes : {"true", "t", "yes", "y", "1"}) {
    if (word == yes) return 1;
  }
  for (const std::string_view no : {"false", "f", "no", "n", "0"}) {
    if (word == no) return 0;
  }
  return -1;
}

// Stores a cell as the requested type; false if it does not fit.
bool read_wanted(CsvType wanted, ByteSpan text, uint8_t point, uint8_t* out) {
  if (wanted == CsvType::kBool) {
    const int64_t value = read_wanted_bool(text);
    std::memcpy(out, &value, 8);
    return value >= 0;
  }
  const Number number = read_wanted_number(text, point);
  if (number.kind == NumberKind::kNone) return false;
  if (wanted == CsvType::kFloat64) {
    std::memcpy(out, &number.real, 8);
    return true;
  }
  int64_t value = number.integer;
  if (number.kind == NumberKind::kFloat) {
    const double limit = static_cast<double>(kMaxExact);
    if (!(number.real >= -limit && number.real <= limit)) return false;
    value = static_cast<int64_t>(number.real);
    if (static_cast<double>(value) != number.real) return false;
  }
  std::memcpy(out, &value, 8);
  return true;
}

}  // namespace

CsvType csv_type_of(uint32_t seen) {
  const bool is_number = (seen & (kSeenInteger | kSeenWide | kSeenFloat)) != 0;
  const bool is_bool = (seen & kSeenBool) != 0;
  const bool is_rounded = (seen & kSeenWide) != 0 && (seen & kSeenFloat) != 0;
  if ((seen & kSeenText) != 0 || (is_number && is_bool) || is_rounded) return CsvType::kText;
  if (is_number) return (seen & kSeenFloat) != 0 ? CsvType::kFloat64 : CsvType::kInt64;
  if (is_bool) return CsvType::kBool;
  return (seen & kSeenBlank) != 0 ? CsvType::kText : CsvType::kEmpty;
}

bool CsvWords::find(ByteSpan text) const {
  return std::find(words_.begin(), words_.end(), as_view(text)) != words_.end();
}

template <typename Work>
void CsvColumns::for_each_chunk(Work&& work) {
  const size_t count = rows_.chunks.size();
  std::atomic<size_t> next{0};
  run_parallel(std::min(threads_, count), [&](size_t) {
    for (size_t i = next++; i < count; i = next++) work(i);
  });
}

void CsvColumns::convert(CsvChunk& chunk, size_t column, Draft& draft, CsvLook& look) const {
  if (chunk.rows == 0) return;
  const uint8_t* base = text_ + chunk.begin;
  const CsvField* field = chunk.fields.data() + column;
  uint8_t* present = draft.present.data() + chunk.first_row;
  Numbers numbers(draft.values.data() + 8 * chunk.first_row);
  uint32_t seen = 0;
  for (size_t row = 0; row < chunk.rows; ++row, field += rows_.columns) {
    const ByteSpan text(base + field->start, field->length);
    if (field->is_escaped) return convert_text(chunk, column, draft, look);
    const bool is_absent = reading_.absent.contain(text);
    const Number number = is_absent ? Number{} : read_number(text, reading_.point);
    present[row] = 1;
    if (number.kind != NumberKind::kNone) {
      seen |= numbers.add(number);
    } else if (is_absent || reading_.blank.contain(text)) {
      seen |= is_absent ? kSeenAbsent : kSeenBlank;
      present[row] = 0;
      numbers.skip();
    } else if (const int value = read_bool(text); value >= 0) {
      seen |= kSeenBool;
      numbers.add_bool(value);
    } else {
      return convert_text(chunk, column, draft, look);
    }
  }
  look.seen = seen;
}

ByteSpan CsvColumns::unescaped(const CsvChunk& chunk, CsvField& field) const {
  if (field.is_escaped) {
    const ByteSpan text = unescape_csv(text_ + chunk.begin + field.start, field.length);
    field.start += 1;
    field.length = static_cast<uint32_t>(text.size()) & 0x7fffffff;
    field.is_escaped = 0;
  }
  return {text_ + chunk.begin + field.start, field.length};
}

void CsvColumns::convert_text(CsvChunk& chunk, size_t column, Draft& draft, CsvLook& look) const {
  if (chunk.rows == 0) return;
  auto* slice = reinterpret_cast<int64_t*>(draft.slices.data()) + 2 * chunk.first_row;
  uint8_t* present = draft.present.data() + chunk.first_row;
  CsvField* field = chunk.fields.data() + column;
  look = CsvLook{.seen = kSeenText};
  for (size_t row = 0; row < chunk.rows; ++row, field += rows_.columns, slice += 2) {
    const ByteSpan text = unescaped(chunk, *field);
    const bool is_absent = reading_.absent.contain(text);
    if (is_absent) look.seen |= kSeenAbsent;
    if (!is_absent) tally(text, chunk.first_row + row, look);
    present[row] = is_absent ? 0 : 1;
    slice[0] = text.data() - text_;
    slice[1] = is_absent ? 0 : field->length;
  }
}

void CsvColumns::tally(ByteSpan text, size_t row, CsvLook& look) const {
  if (look.odd > kTalliedOdd && look.odd > look.regular) return;  // intended as text
  if (read_number(text, reading_.point).kind != NumberKind::kNone || read_bool(text) >= 0) {
    ++look.regular;
  } else if (is_code(text)) {
    ++look.codes;
  } else if (!reading_.blank.contain(text)) {
    if (look.odd++ == 0) look.first_odd = row;
  }
}

void CsvColumns::convert_as(CsvType wanted, CsvChunk& chunk, size_t column, Draft& draft,
                            CsvLook& look) const {
  if (wanted == CsvType::kEmpty) return convert(chunk, column, draft, look);
  if (wanted == CsvType::kText) return convert_text(chunk, column, draft, look);
  look.seen = seen_of(wanted);
  if (chunk.rows == 0) return;
  uint8_t* out = draft.values.data() + 8 * chunk.first_row;
  uint8_t* present = draft.present.data() + chunk.first_row;
  CsvField* field = chunk.fields.data() + column;
  for (size_t row = 0; row < chunk.rows; ++row, field += rows_.columns, out += 8) {
    const ByteSpan text = trim_blanks(unescaped(chunk, *field));
    const bool is_absent = reading_.absent.contain(text);
    present[row] = 0;
    std::memset(out, 0, 8);
    if (is_absent) {
      look.seen |= kSeenAbsent;
    } else if (read_wanted(wanted, text, reading_.point, out)) {
      present[row] = 1;
    } else if (reading_.blank.contain(text)) {
      look.seen |= kSeenBlank;
    } else {
      look.bad.push_back(chunk.first_row + row);
    }
  }
}

std::vector<CsvLook> CsvColumns::look(const std::vector<size_t>& columns,
                                      const std::vector<CsvType>& wanted) {
  if (wanted.size() != columns.size()) throw std::logic_error("a type for each column");
  drafts_.clear();
  drafts_.resize(rows_.columns);
  for (const size_t column : columns) {
    Draft& draft = drafts_.at(column);
    draft.values.extend(8 * rows_.rows);  // memory that is not written to costs nothing
    draft.slices.extend(16 * rows_.rows);
    draft.present.extend(rows_.rows);
    draft.looks.assign(rows_.chunks.size(), {});
  }
  for_each_chunk([&](size_t i) {
    for (size_t at = 0; at < columns.size(); ++at) {
      Draft& draft = drafts_[columns[at]];
      convert_as(wanted[at], rows_.chunks[i], columns[at], draft, draft.looks[i]);
    }
  });
  std::vector<CsvLook> found;
  for (const size_t column : columns) found.push_back(join(drafts_[column]));
  return found;
}

CsvLook CsvColumns::join(const Draft& draft) const {
  CsvLook all;
  for (const CsvLook& look : draft.looks) all.seen |= look.seen;
  const bool is_text = (all.seen & kSeenText) != 0;
  for (size_t i = 0; i < draft.looks.size(); ++i) {
    const CsvLook& look = draft.looks[i];
    const CsvChunk& chunk = rows_.chunks[i];
    if (all.odd == 0) all.first_odd = look.first_odd;
    all.odd += look.odd;
    all.regular += look.regular;
    all.codes += look.codes;
    all.bad.insert(all.bad.end(), look.bad.begin(), look.bad.end());
    if (is_text && (look.seen & kSeenText) == 0) {
      const uint8_t* present = draft.present.data() + chunk.first_row;
      all.regular += static_cast<size_t>(std::count(present, present + chunk.rows, 1));
    }
  }
  return all;
}

const CsvChunk& CsvColumns::chunk_of(size_t row) const {
  for (const CsvChunk& chunk : rows_.chunks) {
    if (row < chunk.first_row + chunk.rows) return chunk;
  }
  throw std::out_of_range("no such row");
}

size_t CsvColumns::offset(size_t row, size_t column) const {
  const CsvChunk& chunk = chunk_of(row);
  return chunk.begin + chunk.fields.at((row - chunk.first_row) * rows_.columns + column).start;
}

std::string CsvColumns::field(size_t row, size_t column) const {
  const CsvChunk& chunk = chunk_of(row);
  const CsvField& found = chunk.fields.at((row - chunk.first_row) * rows_.columns + column);
  std::string copy(reinterpret_cast<const char*>(text_) + chunk.begin + found.start, found.length);
  return found.is_escaped ? unescaped_csv(std::move(copy)) : copy;
}

void CsvColumns::take_numbers(Draft& draft, uint32_t seen, CsvColumn& taken) const {
  taken.values = std::move(draft.values);
  uint8_t* values = taken.values.data();
  for (size_t i = 0; i < rows_.chunks.size() && (seen & kSeenFloat) != 0; ++i) {
    if ((draft.looks[i].seen & kSeenFloat) != 0) continue;
    integers_to_doubles(values + 8 * rows_.chunks[i].first_row, rows_.chunks[i].rows);
  }
  if (taken.type == CsvType::kBool) {
    for (size_t row = 0; row < rows_.rows; ++row) values[row] = values[8 * row];
    taken.values.truncate(rows_.rows);
  }
}

void CsvColumns::take_text(size_t column, Draft& draft, CsvColumn& taken) {
  for_each_chunk([&](size_t i) {
    CsvLook again;
    if ((draft.looks[i].seen & kSeenText) == 0) {
      convert_text(rows_.chunks[i], column, draft, again);
    }
  });
  taken.values = std::move(draft.slices);
}

CsvColumn CsvColumns::take(size_t column, uint32_t seen) {
  if (column >= drafts_.size() || drafts_[column].looks.size() != rows_.chunks.size()) {
    throw std::logic_error("a column is taken once, after it was looked at");
  }
  Draft draft = std::move(drafts_[column]);
  CsvColumn taken;
  taken.type = csv_type_of(seen);
  if (taken.type == CsvType::kEmpty) return taken;
  if (taken.type == CsvType::kText) {
    take_text(column, draft, taken);
  } else {
    take_numbers(draft, seen, taken);
  }
  const uint8_t* present = draft.present.data();
  const bool has_absent =
      draft.present.size() != 0 && std::memchr(present, 0, draft.present.size()) != nullptr;
  if (has_absent) taken.present = std::move(draft.present);
  return taken;
}

}  // namespace datum
