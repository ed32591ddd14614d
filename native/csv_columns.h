// The fields of CSV rows as columns: what type each column is of, and its values.
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

// What was seen in a column, as bits: those of several texts are joined with "or".
enum CsvSeen : uint32_t {
  kSeenBool = 1,
  kSeenInteger = 2,
  kSeenWide = 4,  // an integer that a double cannot hold
  kSeenFloat = 8,
  kSeenBlank = 16,  // a word for no number, such as NA: text in a column of text
  kSeenText = 32,
  kSeenAbsent = 64,  // a row without a value
};

enum class CsvType : uint8_t { kEmpty, kBool, kInt64, kFloat64, kText };

// The narrowest type that holds every value seen exactly.
CsvType csv_type_of(uint32_t seen);

// A few words.
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

// How cells are read, apart from their positions.
struct CsvReading {
  CsvWords absent{{}};  // have no value
  CsvWords blank{{}};   // have none in columns of numbers and truth values
  uint8_t point = '.';  // before the fraction of a number
};

// What was seen in a column.
struct CsvLook {
  uint32_t seen = 0;
  // Of a column that is no numbers, though some cells are: how many look like numbers or truth
  // values, how many do not, the first row that does not, and how many are numbers but for leading
  // zeros, as codes are. Where the others are many, the rest is not counted.
  size_t regular = 0;
  size_t odd = 0;
  size_t first_odd = 0;
  size_t codes = 0;
  std::vector<size_t> bad{};  // rows whose cells are not of the type that was wanted
};

struct CsvColumn {
  CsvType type = CsvType::kEmpty;
  Buffer values;   // a byte for each bool, 8 for each number, a pair of int64 for each text
  Buffer present;  // a byte for each row; empty if all rows have a value
};

// Columns of one text. They read `text` as long as they live, and `take` rewrites it.
class CsvColumns {
 public:
  CsvColumns(uint8_t* text, CsvRows&& rows, CsvReading&& reading, size_t threads)
      : text_(text), rows_(std::move(rows)), reading_(std::move(reading)), threads_(threads) {}
  CsvColumns(CsvColumns&&) = default;
  CsvColumns(const CsvColumns&) = delete;

  const CsvRows& rows() const { return rows_; }

  // What is seen in each of these columns; their values are made at the same time. `wanted` is the
  // type that each is to have whatever it holds, or kEmpty for the one that fits.
  std::vector<CsvLook> look(const std::vector<size_t>& columns, const std::vector<CsvType>& wanted);

  // Where in the text a field starts, and what it holds.
  size_t offset(size_t row, size_t column) const;
  std::string field(size_t row, size_t column) const;

  // A column that was looked at, once; `seen` is what was seen here and in other texts.
  CsvColumn take(size_t column, uint32_t seen);

 private:
  // Values of one column: 8 bytes a row, as integers or, in chunks that hold floats, doubles.
  struct Draft {
    Buffer values;
    Buffer slices;  // of chunks that hold text
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
