#include "csv_columns.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "parallel.h"
#include "text_numbers.h"

namespace datum {
namespace {

constexpr int64_t kMaxExact = int64_t{1} << 53;

std::string_view as_view(ByteSpan text) {
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

// 1 or 0 for the words of a truth value, -1 for any other.
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
  void skip() { store(int64_t{0}); }  // all zeros are a zero of either type

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

uint32_t CsvColumns::convert(CsvChunk& chunk, size_t column, Draft& draft) const {
  if (chunk.rows == 0) return 0;
  const uint8_t* base = text_ + chunk.begin;
  const CsvField* field = chunk.fields.data() + column;
  uint8_t* present = draft.present.data() + chunk.first_row;
  Numbers numbers(draft.values.data() + 8 * chunk.first_row);
  uint32_t seen = 0;
  for (size_t row = 0; row < chunk.rows; ++row, field += rows_.columns) {
    const ByteSpan text(base + field->start, field->length);
    if (field->is_escaped) return convert_text(chunk, column, draft);
    const bool is_absent = absent_.contain(text);
    const Number number = is_absent ? Number{} : read_number(text);
    present[row] = 1;
    if (number.kind != NumberKind::kNone) {
      seen |= numbers.add(number);
    } else if (is_absent || blank_.contain(text)) {
      seen |= is_absent ? kSeenAbsent : kSeenBlank;
      present[row] = 0;
      numbers.skip();
    } else if (const int value = read_bool(text); value >= 0) {
      seen |= kSeenBool;
      numbers.add_bool(value);
    } else {
      return convert_text(chunk, column, draft);
    }
  }
  return seen;
}

uint32_t CsvColumns::convert_text(CsvChunk& chunk, size_t column, Draft& draft) const {
  if (chunk.rows == 0) return 0;
  auto* slice = reinterpret_cast<int64_t*>(draft.slices.data()) + 2 * chunk.first_row;
  uint8_t* present = draft.present.data() + chunk.first_row;
  CsvField* field = chunk.fields.data() + column;
  uint32_t seen = kSeenText;
  for (size_t row = 0; row < chunk.rows; ++row, field += rows_.columns, slice += 2) {
    uint8_t* text = text_ + chunk.begin + field->start;
    if (field->is_escaped) {
      field->length = static_cast<uint32_t>(unescape_csv(text, field->length)) & 0x7fffffff;
      field->is_escaped = 0;
    }
    const bool is_absent = absent_.contain({text, field->length});
    if (is_absent) seen |= kSeenAbsent;
    present[row] = is_absent ? 0 : 1;
    slice[0] = text - text_;
    slice[1] = is_absent ? 0 : field->length;
  }
  return seen;
}

std::vector<uint32_t> CsvColumns::look(const std::vector<size_t>& columns) {
  drafts_.clear();
  drafts_.resize(rows_.columns);
  for (const size_t column : columns) {
    Draft& draft = drafts_.at(column);
    draft.values.extend(8 * rows_.rows);  // of these two, memory not written to costs nothing
    draft.slices.extend(16 * rows_.rows);
    draft.present.extend(rows_.rows);
    draft.seen.assign(rows_.chunks.size(), 0);
  }
  for_each_chunk([&](size_t i) {
    for (const size_t column : columns) {
      drafts_[column].seen[i] = convert(rows_.chunks[i], column, drafts_[column]);
    }
  });
  std::vector<uint32_t> seen;
  for (const size_t column : columns) {
    uint32_t all = 0;
    for (const uint32_t part : drafts_[column].seen) all |= part;
    seen.push_back(all);
  }
  return seen;
}

void CsvColumns::take_numbers(Draft& draft, uint32_t seen, CsvColumn& taken) const {
  taken.values = std::move(draft.values);
  uint8_t* values = taken.values.data();
  for (size_t i = 0; i < rows_.chunks.size() && (seen & kSeenFloat) != 0; ++i) {
    if ((draft.seen[i] & kSeenFloat) != 0) continue;
    integers_to_doubles(values + 8 * rows_.chunks[i].first_row, rows_.chunks[i].rows);
  }
  if (taken.type == CsvType::kBool) {
    for (size_t row = 0; row < rows_.rows; ++row) values[row] = values[8 * row];
    taken.values.truncate(rows_.rows);
  }
}

void CsvColumns::take_text(size_t column, Draft& draft, CsvColumn& taken) {
  for_each_chunk([&](size_t i) {
    if ((draft.seen[i] & kSeenText) == 0) convert_text(rows_.chunks[i], column, draft);
  });
  taken.values = std::move(draft.slices);
}

CsvColumn CsvColumns::take(size_t column, uint32_t seen) {
  if (column >= drafts_.size() || drafts_[column].seen.size() != rows_.chunks.size()) {
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
