// A ColumnSource together with the owners of its memory.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "../encode.h"
#include "bindings.h"

namespace datum::python {

struct ColumnInput {
  ColumnSource column;
  std::vector<std::unique_ptr<BufferView>> views;
  std::vector<nb::object> owners;
  std::vector<ByteSpan> strings;
  std::vector<std::unique_ptr<uint8_t[]>> copies;  // of strings
  size_t copy_room = 0;                            // left in the last of them
  Buffer values;
  std::vector<int64_t> splits;
  std::vector<uint8_t> present;

  // Whether `splits` and `present` fit `rows` rows.
  bool fits(size_t rows) const {
    const bool has_splits = column.layout != Layout::kFixed;
    return (!has_splits || splits.size() == rows + 1) &&
           (present.empty() || present.size() == rows);
  }

  // Copies a short string to stable memory.
  const uint8_t* copy_string(const uint8_t* from, size_t bytes) {
    constexpr size_t kCopyBytes = 64 * 1024;
    if (bytes > copy_room) {
      copies.emplace_back(new uint8_t[kCopyBytes]);
      copy_room = kCopyBytes;
    }
    uint8_t* to = copies.empty() ? nullptr : copies.back().get() + (kCopyBytes - copy_room);
    if (bytes > 0) std::memcpy(to, from, bytes);
    copy_room -= bytes;
    return to;
  }

  // Points `column` at the memory owned here; call it once nothing grows any more.
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
