// Statistics of the values of a column: range, sum, lengths, and most frequent values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "elements.h"
#include "encode.h"

namespace datum {

constexpr size_t kMaxDistinct = 1000;    // beyond this no counts are kept
constexpr size_t kMaxCountedBytes = 64;  // longer texts are not labels: no counts are kept

struct SizeRange {
  uint64_t count = 0;
  uint64_t lowest = UINT64_MAX;
  uint64_t highest = 0;
  uint64_t total = 0;

  void add(uint64_t size) {
    ++count;
    lowest = size < lowest ? size : lowest;
    highest = size > highest ? size : highest;
    total += size;
  }
};

// Integers are exact: the total is `total_high * 2^32 + total_low`. Of floats only finite ones
// count; their total does not depend on the machine, since the order of additions is fixed.
struct NumberRange {
  uint64_t count = 0;
  uint64_t not_numbers = 0;
  uint64_t infinite = 0;
  int64_t lowest = INT64_MAX;
  int64_t highest = INT64_MIN;
  uint64_t unsigned_lowest = UINT64_MAX;
  uint64_t unsigned_highest = 0;
  int64_t total_high = 0;
  int64_t total_low = 0;
  double float_lowest = 0;
  double float_highest = 0;
  double float_total = 0;
};

struct Summary {
  uint64_t missing = 0;
  SizeRange lengths;    // of rows of a variable column, in items
  SizeRange bytes;      // of strings
  NumberRange numbers;  // of numbers
  bool has_counts = false;
  std::vector<std::pair<int64_t, uint64_t>> integer_counts;  // in the order of first occurrence
  std::vector<std::pair<ByteSpan, uint64_t>> string_counts;
};

// `source` must have passed the checks of `encode_records`. `counts` requests the counts of scalar
// integers or strings; they are dropped beyond kMaxDistinct.
Summary summarize(const ColumnSource& source, Element element, size_t rows, bool counts);

}  // namespace datum
