// CSV text into rows of fields, in many threads, without copying.
//
// A field may be quoted with '"', and then holds delimiters, line ends and doubled quotes. What
// follows a closing quote belongs to the field; a quote within an unquoted field is an ordinary
// character. Lines end with LF, CRLF or CR. Empty lines and comments are no rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "wire.h"

namespace datum {

struct CsvOptions {
  uint8_t delimiter = ',';
  uint8_t comment = 0;       // what lines that are no rows start with; 0 if there are none
  size_t columns = 0;        // of every row; 0: taken from the header, the first row
  bool is_last = true;       // whether the text ends where the file does
  size_t max_row_bytes = 0;  // below 2 GiB
  size_t threads = 1;
  size_t chunk_bytes = 256 << 10;  // with its fields, about what a core's own cache holds
};

// The position of a field in the text of its chunk.
struct CsvField {
  uint32_t start;
  uint32_t length : 31;
  uint32_t is_escaped : 1;  // quotes are part of it still: see `unescape_csv`
};

enum class CsvFault : uint8_t { kFields, kNul, kText, kQuote, kLength };

struct CsvBadRow {
  size_t record;  // its number among all rows, good or bad
  size_t offset;  // where it starts
  CsvFault fault;
  size_t fields;  // how many it has
};

// A run of rows: `columns` fields each, one row after the other.
struct CsvChunk {
  size_t begin = 0;
  size_t end = 0;
  size_t first_row = 0;
  size_t rows = 0;
  std::vector<CsvField> fields{};
  std::vector<CsvBadRow> bad{};
};

struct CsvRows {
  std::vector<std::string> header;  // empty unless options.columns was 0
  size_t columns = 0;
  size_t rows = 0;  // without the bad ones
  size_t end = 0;   // where the first incomplete row starts, or the text ends
  std::vector<CsvChunk> chunks;
  std::vector<CsvBadRow> bad;
};

CsvRows read_csv_rows(ByteSpan text, const CsvOptions& options);

// Rewrites an escaped field in place, without its quotes. The text stands between the first quote
// and a fill of quotes, so that a line break at its edge never joins one outside of it, and lines
// are still counted right.
ByteSpan unescape_csv(uint8_t* field, size_t length);
std::string unescaped_csv(std::string field);

// How many lines end in `text`.
size_t count_csv_lines(ByteSpan text);

}  // namespace datum
