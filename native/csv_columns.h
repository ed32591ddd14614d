// The fields of CSV rows as typed columns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "columns.h"
#include "csv_rows.h"

namespace datum {

// The kinds of cells in a column, as bits: those of several texts are joined with "or".
enum CsvSeen : uint32_t {
  kSeenBool = 1,
  kSeenInteger = 2,
  kSeenWide = 4,  // an integer that a double cannot represent
  kSeenFloat = 8,
  kSeenBlank = 16,  // a word such as NA: no value in a column of numbers, text in a column of text
  kSeenText = 32,
  kSeenAbsent = 64,  // a row without a value
};

enum class CsvType : uint8_t { kEmpty, kBool, kInt64, kFloat64, kText };

// The narrowest type that represents every value exactly.
CsvType csv_type_of(uint32_t seen);

// A small set of words.
class CsvWords {
 public:
  explicit CsvWords(std::vector<std::string>&& words) : words_(std::move(words)) {
    for (const std::string& word : words_) lengths_ |= length_bit(word.size());
  }

  bool contain(ByteSpan text) const {
    return (lengths_ & length_bit(text.size())) != 0 && find(text);
  }

 private:
  static uint64_t length_bit(size_t length) { return uint64_t{1} << std::min<size_t>(length, 63); }
  bool find(ByteSpan text) const;

  std::vector<std::string> words_;
  uint64_t lengths_ = 0;
};

// How cells are converted.
struct CsvReading {
  CsvWords absent{{}};  // words for no value
  CsvWords blank{{}};   // words for no value in columns of numbers and booleans
  uint8_t point = '.';  // the decimal separator
};

// The result of scanning a column.
struct CsvLook {
  uint32_t seen = 0;
  // For a column of text with some numbers: how many cells look like numbers or booleans, how many
  // do not, the first row that does not, and how many are numbers except for leading zeros.
  // Counting stops once there are many of the others.
  size_t regular = 0;
  size_t odd = 0;
  size_t first_odd = 0;
  size_t codes = 0;
  std::vector<size_t> bad{};  // rows whose cells do not fit the requested type
};

struct CsvColumn {
  CsvType type = CsvType::kEmpty;
  Buffer values;   // a byte for each bool, 8 for each number, a pair of int64 for each text
  Buffer present;  // a byte for each row; empty if all rows have a value
};

// Columns of one text. They refer to `text` while they exist, and `take` rewrites it.
class CsvColumns {
 public:
  CsvColumns(uint8_t* text, CsvRows&& rows, CsvReading&& reading, size_t threads)
      : text_(text), rows_(std::move(rows)), reading_(std::move(reading)), threads_(threads) {}
  CsvColumns(CsvColumns&&) = default;
  CsvColumns(const CsvColumns&) = delete;

  const CsvRows& rows() const { return rows_; }

  // Scans these columns, and converts their values at the same time. `wanted` is the requested type
  // of each, or kEmpty to infer it.
  std::vector<CsvLook> look(const std::vector<size_t>& columns, const std::vector<CsvType>& wanted);

  // The offset of a field in the text, and its content.
  size_t offset(size_t row, size_t column) const;
  std::string field(size_t row, size_t column) const;

  // Returns a column that was scanned, once; `seen` combines the kinds of this and other texts.
  CsvColumn take(size_t column, uint32_t seen);

 private:
  // Values of one column: 8 bytes a row, integers or, in chunks with floats, doubles.
  struct Draft {
    Buffer values;
    Buffer slices;  // of chunks with text
    Buffer present;
    std::vector<CsvLook> looks;  // by chunk
  };

  template <typename Work>
  void for_each_chunk(Work&& work);
  ByteSpan unescaped(const CsvChunk& chunk, CsvField& field) const;
  void convert(CsvChunk& chunk, size_t column, Draft& draft, CsvLook& look) const;
  void convert_text(CsvChunk& chunk, size_t column, Draft& draft, CsvLook& look) const;
  void convert_as(CsvType wanted, CsvChunk& chunk, size_t column, Draft& draft,
                  CsvLook& look) const;
  void tally(ByteSpan text, size_t row, CsvLook& look) const;
  CsvLook join(const Draft& draft) const;
  const CsvChunk& chunk_of(size_t row) const;
  void take_numbers(Draft& draft, uint32_t seen, CsvColumn& taken) const;
  void take_text(size_t column, Draft& draft, CsvColumn& taken);

  uint8_t* text_;
  CsvRows rows_;
  CsvReading reading_;
  size_t threads_;
  std::vector<Draft> drafts_;
};

}  // namespace datum
