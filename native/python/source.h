// A ColumnSource together with whatever keeps its memory alive.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "../encode.h"
#include "bindings.h"

namespace datum::python {

struct Source {
  ColumnSource column;
  std::vector<std::unique_ptr<BufferView>> views;
  std::vector<nb::object> owners;
  std::vector<ByteSpan> strings;
  Buffer values;
  std::vector<int64_t> splits;
  std::vector<uint8_t> present;

  // Points `column` at the memory owned here; call once nothing grows any more.
  void adopt_own_memory() {
    column.values = values.data();
    column.values_count = values.size() / cell_bytes(column.cell);
    if (column.cell == Cell::kSlice) adopt_strings();
    if (!splits.empty()) column.splits = splits.data();
    if (!present.empty()) column.present = present.data();
  }
  void adopt_strings() {
    column.strings = strings.data();
    column.values_count = strings.size();
  }
};

}  // namespace datum::python
