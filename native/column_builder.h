// Fills one column, value by value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "columns.h"
#include "numbers.h"

namespace datum {

enum class FaultCode : uint8_t {
  kNone,
  kMalformed,  // not a valid message
  kKind,       // another kind than the column's; expected and got are Kinds
  kCount,      // another number of values; for kVariable `expected` must divide it
  kMissing,    // a required key is absent, or has no kind set
  kRange,      // `got` does not fit the column's cell
  kRawBytes,   // a raw value of another size than expected
  kText,       // a text that is not UTF-8
  kBlank,      // blanks for absent values would take too much memory; `got` is their number
};

// The result of adding a value, which consists of units.
struct Outcome {
  FaultCode code = FaultCode::kNone;
  size_t units = 0;
  int64_t expected = 0;
  int64_t got = 0;

  bool is_sound() const { return code == FaultCode::kNone; }
};

// Decodes the varint that fills `chunk` exactly; reads no further than `end`.
inline bool decode_single(ByteSpan chunk, const uint8_t* end, uint64_t& value) {
  const uint8_t* at = chunk.data();
  if (chunk.size() <= 8 && end - at >= 8 && !chunk.empty()) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    const uint64_t stops = ~word & kContinuationBits;
    if (static_cast<size_t>(std::countr_zero(stops) / 8 + 1) != chunk.size()) return false;
    value = gather_sevens(word & (stops ^ (stops - 1)));
    return true;
  }
  WireReader reader(chunk);
  return reader.read_varint(value) && reader.at_end();
}

class ColumnBuilder {
 public:
  // Sizes the column for `rows` records of `payload_bytes` in total, in `buffer`.
  ColumnBuilder(const ColumnSpec& spec, Column& column, size_t rows, size_t payload_bytes,
                ByteSpan buffer);

  // Starts the value of `row`; drops the value of an earlier entry of the same row.
  void begin_value(size_t row) {
    fixed_ = fixed_start_ + row * fixed_bytes_;
    if (seen_row_ == row) drop_value(row);
    seen_row_ = row;
  }
  // Adds the whole value of `row` from a single packed chunk (or single byte string) of the
  // column's kind. Returns false, with nothing added, if that needs the calls below, which also
  // report faults.
  bool take_chunk(size_t row, ByteSpan chunk) {
    if (seen_row_ == row) return false;
    if (fast_ == Fast::kFloat) {
      if (chunk.size() != 4) return false;
      std::memcpy(fixed_start_ + 4 * row, chunk.data(), 4);
    } else if (fast_ == Fast::kInteger) {
      uint64_t value;
      if (!decode_single(chunk, buffer_.data() + buffer_.size(), value)) return false;
      std::memcpy(fixed_start_ + 8 * row, &value, 8);
    } else if (!take_long_chunk(row, chunk)) {
      return false;
    }
    seen_row_ = row;
    return true;
  }
  // Adds a list in any form.
  Outcome append_list(Kind kind, const Pieces& list);
  // Ends a step of a feature list that added `units`.
  void end_step(size_t units);
  // Ends the value of `row`, of this many units or steps.
  void end_value(size_t row, size_t units) {
    if (is_fixed_) return;
    splits_[row + 1] = splits_[row] + static_cast<int64_t>(units);
  }
  // Fills in a blank or default for an absent value; false if the value is required.
  bool fill_absent(size_t row);

  // Whether the rows do not fit into memory, so that none can be added.
  bool is_too_large() const { return is_too_large_; }
  const ColumnSpec& spec() const { return spec_; }
  bool has_value(size_t row) const { return seen_row_ == row; }
  void forget_value() { seen_row_ = SIZE_MAX; }

 private:
  // How `take_chunk` handles a chunk.
  enum class Fast : uint8_t { kNone, kFloat, kInteger, kCopy, kCopyMany, kIntegers, kSlice };
  static Fast choose_fast(const ColumnSpec& spec);

  bool take_long_chunk(size_t row, ByteSpan chunk);
  void reserve_ahead(size_t row, size_t bytes);
  void drop_value(size_t row);
  uint8_t* reserve_cells(size_t count);
  Outcome append_numbers(const Pieces& list, size_t count);
  void append_floats(const Pieces& list, size_t count);
  Outcome append_slices(const Pieces& list, size_t count);
  Outcome append_raw(const Pieces& list, size_t count);

  const ColumnSpec& spec_;
  Column& column_;
  ByteSpan buffer_;  // slices are relative to its start
  int64_t* splits_ = nullptr;
  uint8_t* fixed_start_ = nullptr;  // kFixed: the values of all rows
  uint8_t* fixed_ = nullptr;        // kFixed: the value of the current row
  size_t fixed_bytes_ = 0;          // kFixed: the size of a row; 0 in other layouts
  size_t rows_;
  size_t payload_bytes_;
  size_t unit_bytes_;
  size_t seen_row_ = SIZE_MAX;
  bool is_fixed_;
  bool is_too_large_ = false;
  Fast fast_;
};

}  // namespace datum
