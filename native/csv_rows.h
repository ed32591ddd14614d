// CSV text split into rows of fields, by several threads, without copying.
//
// A field may be quoted with '"', and may then contain delimiters, line ends and doubled quotes.
// Text after a closing quote belongs to the field; a quote within an unquoted field is an ordinary
// character. Lines end with LF, CRLF or CR. Empty lines and comments are skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "wire.h"

namespace datum {

struct CsvOptions {
  uint8_t delimiter = ',';
  uint8_t comment = 0;       // the first character of comment lines; 0 if there are none
  size_t columns = 0;        // of every row; 0: as many as the header, the first row
  bool is_last = true;       // whether the text ends where the file does
  size_t max_row_bytes = 0;  // below 2 GiB
  size_t threads = 1;
  size_t chunk_bytes = 256 << 10;  // with its fields, about the size of a core's own cache
};

// The position of a field in the text of its chunk.
struct CsvField {
  uint32_t start;
  uint32_t length : 31;
  uint32_t is_escaped : 1;  // still contains quotes: see `unescape_csv`
};

enum class CsvFault : uint8_t { kFields, kNul, kText, kQuote, kLength };

struct CsvBadRow {
  size_t record;  // its number among all rows, good or bad
  size_t offset;  // its start
  CsvFault fault;
  size_t fields;  // the number of its fields
};

// A run of rows: `columns` fields each, row by row.
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
  size_t end = 0;   // the start of the first incomplete row, or the end of the text
  std::vector<CsvChunk> chunks;
  std::vector<CsvBadRow> bad;
};

CsvRows read_csv_rows(ByteSpan text, const CsvOptions& options);

// Rewrites an escaped field in place, without its quotes. The text is put between the first quote
// and a padding of quotes, so that a line break at its edge never joins one outside of it, and
// lines are still counted correctly.
ByteSpan unescape_csv(uint8_t* field, size_t length);
std::string unescaped_csv(std::string field);

// Returns the number of line ends in `text`.
size_t count_csv_lines(ByteSpan text);

}  // namespace datum
