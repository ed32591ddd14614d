// The fields of CSV rows as columns: what type each column is of, and its values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
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

// The narrowest type that holds all that was seen without a change.
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

struct CsvColumn {
  CsvType type = CsvType::kEmpty;
  Buffer values;   // a byte for each bool, 8 for each number, a pair of int64 for each text
  Buffer present;  // a byte for each row; empty if all rows have a value
};

// Columns of one text. They read `text` as long as they live, and `take` rewrites it.
class CsvColumns {
 public:
  // Fields that are `absent` have no value; in columns of numbers and truth values `blank` ones
  // have none either.
  CsvColumns(uint8_t* text, CsvRows&& rows, CsvWords&& absent, CsvWords&& blank, size_t threads)
      : text_(text),
        rows_(std::move(rows)),
        absent_(std::move(absent)),
        blank_(std::move(blank)),
        threads_(threads) {}
  CsvColumns(CsvColumns&&) = default;
  CsvColumns(const CsvColumns&) = delete;

  const CsvRows& rows() const { return rows_; }

  // What is seen in each of these columns; their values are made at the same time.
  std::vector<uint32_t> look(const std::vector<size_t>& columns);

  // A column that was looked at, once; `seen` is what was seen here and in other texts.
  CsvColumn take(size_t column, uint32_t seen);

 private:
  // Values of one column: 8 bytes a row, as integers or, in chunks that hold floats, doubles.
  struct Draft {
    Buffer values;
    Buffer slices;  // of chunks that hold text
    Buffer present;
    std::vector<uint32_t> seen;  // by chunk
  };

  template <typename Work>
  void for_each_chunk(Work&& work);
  uint32_t convert(CsvChunk& chunk, size_t column, Draft& draft) const;
  uint32_t convert_text(CsvChunk& chunk, size_t column, Draft& draft) const;
  void take_numbers(Draft& draft, uint32_t seen, CsvColumn& taken) const;
  void take_text(size_t column, Draft& draft, CsvColumn& taken);

  uint8_t* text_;
  CsvRows rows_;
  CsvWords absent_;
  CsvWords blank_;
  size_t threads_;
  std::vector<Draft> drafts_;
};

}  // namespace datum
