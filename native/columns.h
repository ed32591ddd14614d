// The request of a parse (ColumnSpec), and its result (Column).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "memory.h"
#include "message.h"

namespace datum {

// A growable block of uninitialised bytes.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { release_block(data_); }

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

  size_t room() const { return capacity_ - size_; }

  void reserve(size_t bytes) {
    if (bytes > capacity_) reallocate(bytes);
  }
  // Adds room for `bytes` more and returns its start.
  uint8_t* extend(size_t bytes) {
    const size_t start = size_;
    if (bytes > capacity_ - size_) {
      reallocate(size_ + bytes > 2 * capacity_ ? size_ + bytes : 2 * capacity_);
    }
    size_ += bytes;
    return data_ + start;
  }
  void truncate(size_t bytes) { size_ = bytes; }

  // Releases ownership of the memory; free it with `release_block`.
  uint8_t* release() {
    uint8_t* data = data_;
    data_ = nullptr;
    size_ = capacity_ = 0;
    return data;
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  void reallocate(size_t capacity);

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// How one value is stored in the batch.
enum class Cell : uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat32,
  kSlice,  // a byte string: u64 start, u64 length
  kRaw,    // bytes copied unchanged
};

struct Slice {
  uint64_t start;
  uint64_t length;
};

size_t cell_bytes(Cell cell);

// Calls `use(T{})` with the integer type of a cell.
template <typename Use>
auto with_integer(Cell cell, Use&& use) {
  switch (cell) {
    case Cell::kBool:
      return use(bool{});
    case Cell::kInt8:
      return use(int8_t{});
    case Cell::kInt16:
      return use(int16_t{});
    case Cell::kInt32:
      return use(int32_t{});
    case Cell::kUint8:
      return use(uint8_t{});
    case Cell::kUint16:
      return use(uint16_t{});
    case Cell::kUint32:
      return use(uint32_t{});
    case Cell::kUint64:
      return use(uint64_t{});
    default:
      return use(int64_t{});
  }
}

enum class Layout : uint8_t {
  kFixed,       // `unit` values in every record
  kVariable,    // any number of units of `unit` values
  kSteps,       // a feature list of any number of steps, one unit each
  kNestedSteps  // a feature list whose steps hold any number of units
};

struct ColumnSpec {
  std::string key;
  Kind kind = Kind::kInt64;
  Layout layout = Layout::kFixed;
  Cell cell = Cell::kInt64;
  size_t unit = 1;                       // values in a unit; for kRaw, bytes in a unit
  bool is_text = false;                  // kSlice: whether strings must be UTF-8
  bool is_optional = false;              // absent values become `default_value`, or zeros
  std::vector<uint8_t> default_value{};  // cells; kFixed: empty or one unit

  bool is_sequence() const { return layout == Layout::kSteps || layout == Layout::kNestedSteps; }
  // Whether each value, of a record or of a step, is exactly one unit.
  bool has_fixed_units() const { return layout == Layout::kFixed || layout == Layout::kSteps; }
  size_t unit_bytes() const { return unit * cell_bytes(cell); }
};

// The values of one feature over a run of records.
struct Column {
  Buffer values;        // cells
  Buffer splits;        // rows + 1 int64, in units (or steps); empty for kFixed
  Buffer inner_splits;  // steps + 1 int64, in units; kNestedSteps only
  Buffer present;       // one byte for each row; optional columns only
};

}  // namespace datum
