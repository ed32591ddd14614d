// Fuzzes summaries: they equal those computed value by value.
#include "summary.h"

#include <cmath>
#include <map>
#include <string>

#include "columns.h"

using namespace datum;
using datum::fuzz::cells_of;
using datum::fuzz::Input;
using datum::fuzz::Owned;
using datum::fuzz::require;
using datum::fuzz::take_column;

namespace {

// Calls `use(cell)` for each cell of the rows that are present.
template <typename Use>
void for_each_cell(const ColumnSource& source, size_t rows, Use&& use) {
  for (size_t row = 0; row < rows; ++row) {
    if (source.present != nullptr && source.present[row] == 0) continue;
    const auto [first, last] = cells_of(source, source.splits, source.inner_splits, row);
    for (size_t cell = first; cell < last; ++cell) use(cell);
  }
}

void check_strings(const ColumnSource& source, size_t rows, bool counts, const Summary& found) {
  std::map<std::string, uint64_t> expected;
  uint64_t bytes = 0;
  bool is_short = true;
  for_each_cell(source, rows, [&](size_t cell) {
    const ByteSpan string = source.strings[cell];
    ++expected[std::string(string.begin(), string.end())];
    bytes += string.size();
    is_short = is_short && string.size() <= kMaxCountedBytes;
  });
  require(found.bytes.total == bytes, "all bytes are summed up");
  if (!counts) return;
  require(found.has_counts == is_short, "short strings are counted");
  if (!found.has_counts) return;
  require(found.string_counts.size() == expected.size(), "each string is counted once");
  for (const auto& [string, count] : found.string_counts) {
    require(expected.at(std::string(string.begin(), string.end())) == count, "counts are right");
  }
}

void check_floats(const ColumnSource& source, size_t rows, const Summary& found) {
  const auto* values = reinterpret_cast<const float*>(source.values);
  NumberRange range;
  for_each_cell(source, rows, [&](size_t cell) {
    const double value = static_cast<double>(values[cell]);
    range.not_numbers += std::isnan(value);
    range.infinite += std::isinf(value);
    if (!std::isfinite(value)) return;
    range.float_lowest = range.count == 0 ? value : std::min(range.float_lowest, value);
    range.float_highest = range.count == 0 ? value : std::max(range.float_highest, value);
    ++range.count;
  });
  const NumberRange& numbers = found.numbers;
  require(numbers.count == range.count, "finite floats are counted");
  require(numbers.not_numbers == range.not_numbers, "NaNs are counted");
  require(numbers.infinite == range.infinite, "infinite floats are counted");
  require(numbers.float_lowest == range.float_lowest, "the lowest is found");
  require(numbers.float_highest == range.float_highest, "the highest is found");
}

template <typename T>
void check_integers(const ColumnSource& source, size_t rows, bool counts, const Summary& found) {
  const auto* values = reinterpret_cast<const T*>(source.values);
  std::map<int64_t, uint64_t> expected;
  uint64_t total = 0;  // modulo 2^64
  uint64_t count = 0;
  for_each_cell(source, rows, [&](size_t cell) {
    ++expected[static_cast<int64_t>(values[cell])];
    total += static_cast<uint64_t>(values[cell]);
    ++count;
  });
  const NumberRange& numbers = found.numbers;
  require(numbers.count == count, "integers are counted");
  const uint64_t sum =
      (static_cast<uint64_t>(numbers.total_high) << 32) + static_cast<uint64_t>(numbers.total_low);
  require(sum == total, "integers are summed up");
  if (count > 0 && !std::is_same_v<T, uint64_t>) {
    require(numbers.lowest == expected.begin()->first, "the lowest is found");
    require(numbers.highest == expected.rbegin()->first, "the highest is found");
  }
  if (!counts) return;
  require(found.has_counts, "few integers are counted");
  require(found.integer_counts.size() == expected.size(), "each integer is counted once");
  for (const auto& [value, times] : found.integer_counts) {
    require(expected.at(value) == times, "counts are right");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const size_t rows = input.byte() % 16;
  Owned owned;
  take_column(input, rows, owned);
  const ColumnSource& source = owned.source;
  if (source.cell == Cell::kRaw || check_source(source, rows) != EncodeError::kNone) return 0;
  const bool counts = source.layout == Layout::kFixed && source.unit == 1;
  if (source.cell == Cell::kSlice) {
    check_strings(source, rows, counts, summarize(source, Element::kText, rows, counts));
  } else if (source.cell == Cell::kFloat32) {
    check_floats(source, rows, summarize(source, Element::kFloat32, rows, counts));
  } else {
    const auto element = static_cast<Element>(source.cell);  // in the same order
    const Summary found = summarize(source, element, rows, counts);
    with_integer(source.cell,
                 [&](auto zero) { check_integers<decltype(zero)>(source, rows, counts, found); });
  }
  return 0;
}
