#include "csv_rows.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>

#include "csv_marks.h"
#include "message.h"
#include "parallel.h"

namespace datum {
namespace {

constexpr size_t kMaxColumns = 1 << 20;  // of a sensible header

bool is_line_end(uint8_t byte) { return byte == '\n' || byte == '\r'; }

class Lexer {
 public:
  Lexer(ByteSpan text, const CsvOptions& options, size_t columns)
      : is_last(options.is_last),
        text_(text),
        options_(options),
        columns_(columns),
        max_fields_(columns == 0 ? kMaxColumns : columns),
        marks_(text, options.delimiter) {}

  // Reads the rows that start before `end`, and all of the last one.
  void read_chunk(CsvChunk& chunk, size_t begin, size_t end) {
    chunk = CsvChunk{.begin = begin, .end = begin};
    chunk.fields.reserve(expected_fields);
    check(begin, end);
    marks_.seek(begin);
    while (chunk.end < end && read_row(chunk)) {
    }
    expected_fields = chunk.fields.size() + chunk.fields.size() / 16;
  }

  // Reads the names in the first row, and where the next row starts; false if it is incomplete.
  bool read_header(size_t& end, std::vector<std::string>& names) {
    CsvChunk row;
    marks_.seek(0);
    while (row.fields.empty() && row.end < text_.size()) {
      if (!read_fields(row)) return false;
    }
    if (found_ > kMaxColumns) throw std::length_error("a header of too many columns");
    for (const CsvField& field : row.fields) {
      std::string name(reinterpret_cast<const char*>(text_.data()) + field.start, field.length);
      names.push_back(field.is_escaped ? unescaped_csv(std::move(name)) : std::move(name));
    }
    end = row.end;
    return true;
  }

  bool is_last;
  size_t expected_fields = 0;  // of the next chunk, estimated from the last one

 private:
  // Checks a run of text as a whole, so that most rows need no check of their own.
  void check(size_t begin, size_t end) {
    end = std::clamp(end, begin, text_.size());
    const ByteSpan run = text_.subspan(begin, end - begin);
    is_clean_ = !has_nul(run) && is_utf8(run);
    checked_to_ = end;
  }

  static bool has_nul(ByteSpan run) {
    return !run.empty() && std::memchr(run.data(), 0, run.size()) != nullptr;
  }

  // Returns false if the row is incomplete.
  bool read_row(CsvChunk& chunk) {
    const size_t begin = chunk.end;
    const size_t before = chunk.fields.size();
    if (!read_fields(chunk)) {
      chunk.fields.resize(before);
      return false;
    }
    if (found_ == 0) return true;
    CsvBadRow bad{chunk.rows + chunk.bad.size(), begin, CsvFault::kFields, found_};
    if (is_sound(text_.subspan(begin, chunk.end - begin), bad.fault)) {
      ++chunk.rows;
    } else {
      chunk.fields.resize(before);
      chunk.bad.push_back(bad);
    }
    return true;
  }

  bool is_sound(ByteSpan row, CsvFault& fault) const {
    const bool is_clean = is_clean_ && row.data() + row.size() <= text_.data() + checked_to_;
    if (is_unclosed_) {
      fault = CsvFault::kQuote;
    } else if (row.size() > options_.max_row_bytes) {
      fault = CsvFault::kLength;
    } else if (!is_clean && has_nul(row)) {
      fault = CsvFault::kNul;
    } else if (!is_clean && !is_utf8(row)) {
      fault = CsvFault::kText;
    } else {
      return found_ == columns_;
    }
    return false;
  }

  // Appends the fields of the row at chunk.end and advances it; none for an empty line or a
  // comment.
  bool read_fields(CsvChunk& chunk) {
    size_t start = chunk.end;
    found_ = 0;
    is_unclosed_ = false;
    if (options_.comment != 0 && start < text_.size() && text_[start] == options_.comment) {
      return skip_line(chunk);
    }
    for (;;) {
      const size_t at = read_field(chunk, start);
      if (at < text_.size() && !is_line_end(text_[at])) {
        start = at + 1;
        continue;
      }
      const bool is_blank = at == chunk.end;
      if (!end_row(chunk, at)) return false;
      if (is_blank) {
        chunk.fields.pop_back();
        found_ = 0;
      }
      return true;
    }
  }

  bool skip_line(CsvChunk& chunk) {
    size_t at = marks_.next();
    while (at < text_.size() && !is_line_end(text_[at])) at = marks_.next();
    return end_row(chunk, at);
  }

  // Returns where the field that starts at `start` ends.
  size_t read_field(CsvChunk& chunk, size_t start) {
    size_t at = marks_.next();
    size_t inset = 0;
    bool is_escaped = false;
    if (at == start && is_quote(at)) {
      const size_t close = find_close(is_escaped);
      is_unclosed_ = is_unclosed_ || close == text_.size();
      at = close == text_.size() ? close : marks_.next();
      while (is_quote(at)) at = marks_.next();
      is_escaped = is_escaped || at != close + 1;
      inset = is_escaped ? 0 : 1;
    } else {
      while (is_quote(at)) at = marks_.next();
    }
    if (++found_ > max_fields_) return at;
    // The fields of a row beyond the limit, which is refused, may be cut short.
    const size_t length = std::min<size_t>(at - start - 2 * inset, (uint32_t{1} << 31) - 1);
    const size_t place = start + inset - chunk.begin;
    chunk.fields.push_back({static_cast<uint32_t>(place),
                            static_cast<uint32_t>(length) & 0x7fffffff, is_escaped ? 1u : 0u});
    return at;
  }

  bool is_quote(size_t at) const { return at < text_.size() && text_[at] == kCsvQuote; }

  // Returns the quote that closes a field; the size of the text if there is none.
  size_t find_close(bool& is_escaped) {
    for (;;) {
      size_t at = marks_.next();
      while (at < text_.size() && text_[at] != kCsvQuote) at = marks_.next();
      if (!is_quote(at + 1)) return at;
      marks_.next();  // the second of a pair
      is_escaped = true;
    }
  }

  // Moves chunk.end behind the line end at `at`; false if more text might belong to it.
  bool end_row(CsvChunk& chunk, size_t at) {
    const bool is_return = at < text_.size() && text_[at] == '\r';
    if (!is_last && (at == text_.size() || (is_return && at + 1 == text_.size()))) return false;
    chunk.end = std::min(at + 1, text_.size());
    if (is_return && chunk.end < text_.size() && text_[chunk.end] == '\n') {
      marks_.next();
      ++chunk.end;
    }
    return true;
  }

  ByteSpan text_;
  const CsvOptions& options_;
  size_t columns_;
  size_t max_fields_;  // fields of a row to keep; the others are only counted
  CsvMarks marks_;
  size_t found_ = 0;  // fields of the row
  bool is_clean_ = false;
  size_t checked_to_ = 0;
  bool is_unclosed_ = false;  // whether a quoted field of the row extends to the end of the text
};

// Guesses the start of a line in the piece of text at `at`, preferably one with an even number of
// quotes before it; the end of the piece if it has no line.
size_t guess_start(ByteSpan text, size_t at, size_t size, bool is_inside) {
  const size_t end = std::min(text.size(), at + size);
  size_t fallback = end;
  for (; at < end; ++at) {
    is_inside ^= text[at] == kCsvQuote;
    if (!is_line_end(text[at])) continue;
    const bool is_pair = text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
    const size_t start = at + (is_pair ? 2 : 1);
    if (!is_inside) return start;
    if (fallback == end) fallback = start;
    if (is_pair) ++at;
  }
  return fallback;
}

bool has_odd_quotes(const uint8_t* text, size_t size) {
  uint8_t is_odd = 0;
  for (size_t i = 0; i < size; ++i) is_odd ^= static_cast<uint8_t>(text[i] == kCsvQuote);
  return is_odd != 0;
}

// Guesses the starts of rows about a chunk apart. Stray quotes mislead it; `mend` corrects that.
std::vector<size_t> guess_bounds(ByteSpan text, size_t begin, const CsvOptions& options) {
  const size_t size = options.chunk_bytes;
  const size_t pieces = std::max<size_t>(1, (text.size() - begin) / size);
  std::vector<uint8_t> is_odd(pieces);
  std::atomic<size_t> next{0};
  run_parallel(std::min(options.threads, pieces), [&](size_t) {
    for (size_t i = next++; i + 1 < pieces; i = next++) {
      is_odd[i] = has_odd_quotes(text.data() + begin + i * size, size);
    }
  });
  std::vector<size_t> bounds{begin};
  bool is_inside = false;
  for (size_t i = 1; i < pieces; ++i) {
    is_inside ^= is_odd[i - 1] != 0;
    const size_t start = guess_start(text, begin + i * size, size, is_inside);
    bounds.push_back(std::max(start, bounds.back()));
  }
  bounds.push_back(text.size());
  return bounds;
}

// Reads a chunk again if it does not start where the one before ended, or ended too early.
void mend(Lexer& lexer, std::vector<CsvChunk>& chunks, const std::vector<size_t>& bounds) {
  size_t begin = bounds[0];
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (begin < bounds[i]) {  // no complete row follows
      chunks[i] = CsvChunk{.begin = begin, .end = begin};
    } else if (chunks[i].begin != begin || chunks[i].end < bounds[i + 1]) {
      lexer.read_chunk(chunks[i], begin, bounds[i + 1]);
    }
    begin = chunks[i].end;
  }
}

void gather(CsvRows& found) {
  for (CsvChunk& chunk : found.chunks) {
    chunk.first_row = found.rows;
    const size_t first_record = found.rows + found.bad.size();
    for (CsvBadRow bad : chunk.bad) {
      bad.record += first_record;
      found.bad.push_back(bad);
    }
    found.rows += chunk.rows;
    found.end = chunk.end;
  }
}

}  // namespace

CsvRows read_csv_rows(ByteSpan text, const CsvOptions& options) {
  CsvRows found;
  found.columns = options.columns;
  if (options.columns == 0) {
    Lexer lexer(text, options, 0);
    if (!lexer.read_header(found.end, found.header)) return found;
    found.columns = found.header.size();
  }
  const std::vector<size_t> bounds = guess_bounds(text, found.end, options);
  found.chunks.resize(bounds.size() - 1);
  std::atomic<size_t> next{0};
  run_parallel(std::min(options.threads, found.chunks.size()), [&](size_t) {
    size_t expected_fields = 0;
    for (size_t i = next++; i < found.chunks.size(); i = next++) {
      // A wrong guess may read all the rest as a quoted field: bound what it sees.
      const size_t horizon = std::min(text.size(), bounds[i + 1] + options.chunk_bytes);
      Lexer lexer(text.first(horizon), options, found.columns);
      lexer.is_last = options.is_last && horizon == text.size();
      lexer.expected_fields = expected_fields;
      lexer.read_chunk(found.chunks[i], bounds[i], bounds[i + 1]);
      expected_fields = lexer.expected_fields;
    }
  });
  Lexer lexer(text, options, found.columns);
  mend(lexer, found.chunks, bounds);
  gather(found);
  return found;
}

ByteSpan unescape_csv(uint8_t* field, size_t length) {
  size_t out = 1;
  bool is_inside = true;  // an escaped field starts with a quote
  for (size_t i = 1; i < length; ++i) {
    if (is_inside && field[i] == kCsvQuote) {
      if (i + 1 == length || field[i + 1] != kCsvQuote) {
        is_inside = false;
        continue;
      }
      ++i;
    }
    field[out++] = field[i];
  }
  if (out < length) std::memset(field + out, kCsvQuote, length - out);
  return {field + 1, out - 1};
}

std::string unescaped_csv(std::string field) {
  const ByteSpan text = unescape_csv(reinterpret_cast<uint8_t*>(field.data()), field.size());
  return {text.begin(), text.end()};
}

size_t count_csv_lines(ByteSpan text) {
  constexpr size_t kRun = 128;  // sums of 128 fit into a byte, so that compilers vectorize the loop
  size_t lines = 0;
  for (size_t start = 0; start < text.size(); start += kRun) {
    const size_t end = std::min(start + kRun, text.size());
    uint8_t ends = 0;
    for (size_t i = start; i < end; ++i) ends += text[i] == '\n';
    uint8_t returns = 0;  // CR not followed by LF
    for (size_t i = start; i < std::min(end, text.size() - 1); ++i) {
      returns += static_cast<uint8_t>(text[i] == '\r') & static_cast<uint8_t>(text[i + 1] != '\n');
    }
    lines += ends + returns;
  }
  return lines + (!text.empty() && text.back() == '\r' ? 1 : 0);
}

}  // namespace datum
