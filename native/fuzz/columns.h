// Columns of every cell and layout, from the bytes of an input.
#pragma once

#include <utility>
#include <vector>

#include "checks.h"
#include "encode.h"

namespace datum::fuzz {

// A source with the memory that it points to.
struct Owned {
  ColumnSource source;
  std::vector<uint8_t> values;
  std::vector<ByteSpan> strings;
  std::vector<int64_t> splits;
  std::vector<int64_t> inner_splits;
  std::vector<uint8_t> present;
};

inline std::vector<int64_t> take_splits(Input& input, size_t rows) {
  std::vector<int64_t> splits{input.byte() % 4 == 0 ? 1 : 0};
  for (size_t i = 0; i < rows; ++i) splits.push_back(splits.back() + input.byte() % 4);
  return splits;
}

inline void take_values(Input& input, size_t cells, Owned& owned) {
  ColumnSource& source = owned.source;
  if (source.cell == Cell::kSlice) {
    for (size_t i = 0; i < cells; ++i) owned.strings.push_back(input.take(input.byte()));
    source.strings = owned.strings.data();
  } else {
    const ByteSpan bytes = input.take(cells * cell_bytes(source.cell));
    owned.values.assign(bytes.begin(), bytes.end());
    owned.values.resize(cells * cell_bytes(source.cell), 7);
    if (source.cell == Cell::kBool) {
      for (uint8_t& value : owned.values) value &= 1;
    }
    source.values = owned.values.data();
  }
  source.values_count = cells;
}

inline void take_column(Input& input, size_t rows, Owned& owned) {
  ColumnSource& source = owned.source;
  source.layout = static_cast<Layout>(input.byte() % 4);
  source.cell = static_cast<Cell>(input.byte() % 12);
  source.kind = source.cell == Cell::kFloat32                              ? Kind::kFloat
                : source.cell == Cell::kSlice || source.cell == Cell::kRaw ? Kind::kBytes
                                                                           : Kind::kInt64;
  source.unit = input.byte() % 4;
  size_t units = rows;
  if (source.layout != Layout::kFixed) {
    source.unit = std::max<size_t>(source.unit, 1);
    owned.splits = take_splits(input, rows);
    source.splits = owned.splits.data();
    units = static_cast<size_t>(owned.splits.back());
  }
  if (source.layout == Layout::kNestedSteps) {
    owned.inner_splits = take_splits(input, units);
    source.inner_splits = owned.inner_splits.data();
    source.inner_count = owned.inner_splits.size();
    units = static_cast<size_t>(owned.inner_splits.back());
  }
  take_values(input, units * source.unit, owned);
  if (input.byte() % 2 == 1) {
    for (size_t i = 0; i < rows; ++i) owned.present.push_back(input.byte() % 2);
    source.present = owned.present.data();
  }
}

// Returns the cells of a row, by the splits of its layout.
inline std::pair<size_t, size_t> cells_of(const ColumnSource& source, const int64_t* splits,
                                          const int64_t* inner, size_t row) {
  auto first = static_cast<int64_t>(row);
  int64_t last = first + 1;
  if (source.layout != Layout::kFixed) {
    first = splits[row];
    last = splits[row + 1];
  }
  if (source.layout == Layout::kNestedSteps) {
    first = inner[first];
    last = inner[last];
  }
  return {static_cast<size_t>(first) * source.unit, static_cast<size_t>(last) * source.unit};
}

}  // namespace datum::fuzz
