#include "column_builder.h"

#include <algorithm>

namespace datum {
namespace {

// Limits of blanks for absent values beyond the size of the records: a schema of a few bytes could
// ask for any amount of memory.
constexpr size_t kMaxBlankBytes = size_t{1} << 30;
constexpr size_t kMaxGrowth = 16;  // cell bytes for each byte of a record

}  // namespace

ColumnBuilder::ColumnBuilder(const ColumnSpec& spec, Column& column, size_t rows,
                             size_t payload_bytes, ByteSpan buffer)
    : spec_(spec),
      column_(column),
      buffer_(buffer),
      rows_(rows),
      payload_bytes_(payload_bytes),
      unit_bytes_(spec.unit_bytes()),
      is_fixed_(spec.layout == Layout::kFixed),
      fast_(choose_fast(spec)) {
  constexpr size_t kSmall = 64;  // never empty, so that no null pointer is ever copied to
  column.values.reserve(kSmall);
  if (is_fixed_) {
    // Required values cannot be larger than the records: a float takes four bytes, an integer or a
    // byte string at least one. The first record that is too small ends the parsing, so that only
    // the rows before it are stored.
    const size_t wire_bytes = spec.cell == Cell::kFloat32 ? 4 * spec.unit : spec.unit;
    size_t stored_rows = rows;
    if (spec.is_optional) {
      const size_t limit = kMaxBlankBytes + kMaxGrowth * payload_bytes;
      is_too_large_ = unit_bytes_ > limit / std::max<size_t>(rows, 1);
      if (is_too_large_) return;
    } else if (wire_bytes > 0) {
      stored_rows = std::min(rows, payload_bytes / wire_bytes);
    }
    column.values.extend(stored_rows * unit_bytes_);
    fixed_start_ = column.values.data();
    fixed_bytes_ = unit_bytes_;
  } else {
    splits_ = reinterpret_cast<int64_t*>(column.splits.extend(8 * (rows + 1)));
    splits_[0] = 0;
  }
  if (spec.layout == Layout::kNestedSteps) std::memset(column.inner_splits.extend(8), 0, 8);
  if (spec.is_optional && rows > 0) std::memset(column.present.extend(rows), 1, rows);
}

ColumnBuilder::Fast ColumnBuilder::choose_fast(const ColumnSpec& spec) {
  if (spec.is_sequence()) return Fast::kNone;
  const bool is_fixed = spec.layout == Layout::kFixed;
  switch (spec.cell) {
    case Cell::kFloat32:
      if (is_fixed && spec.unit == 1) return Fast::kFloat;
      [[fallthrough]];
    case Cell::kRaw:
      return is_fixed ? Fast::kCopy : Fast::kCopyMany;
    case Cell::kSlice:
      return spec.unit == 1 ? Fast::kSlice : Fast::kNone;
    case Cell::kInt64:
    case Cell::kUint64:
      if (is_fixed) return spec.unit == 1 ? Fast::kInteger : Fast::kNone;
      return Fast::kIntegers;
    default:
      return Fast::kNone;
  }
}

// Reserves memory for all rows, extrapolated from those so far, before values outgrow it.
void ColumnBuilder::reserve_ahead(size_t row, size_t bytes) {
  constexpr size_t kSampleRows = 8;
  Buffer& values = column_.values;
  if (row < kSampleRows || values.room() >= bytes) return;
  const size_t guess = values.size() / row * rows_;
  const size_t most = payload_bytes_ * (spec_.kind == Kind::kInt64 ? 8 : 1);
  values.reserve(std::max(std::min(guess + guess / 8, most), values.size()) + bytes);
}

void ColumnBuilder::drop_value(size_t row) {
  if (is_fixed_) return;
  auto units = static_cast<size_t>(splits_[row]);
  if (spec_.layout == Layout::kNestedSteps) {
    column_.inner_splits.truncate(8 * (units + 1));
    int64_t last;
    std::memcpy(&last, column_.inner_splits.data() + 8 * units, 8);
    units = static_cast<size_t>(last);
  }
  column_.values.truncate(units * unit_bytes_);
}

bool ColumnBuilder::take_long_chunk(size_t row, ByteSpan chunk) {
  size_t units = 1;
  fixed_ = fixed_start_ + row * fixed_bytes_;
  switch (fast_) {
    case Fast::kCopy:
      if (chunk.size() != unit_bytes_) return false;
      std::memcpy(fixed_, chunk.data(), unit_bytes_);
      break;
    case Fast::kCopyMany:
      if (chunk.size() % unit_bytes_ != 0) return false;
      reserve_ahead(row, chunk.size());
      std::memcpy(column_.values.extend(chunk.size()), chunk.data(), chunk.size());
      units = chunk.size() / unit_bytes_;
      break;
    case Fast::kIntegers: {
      const size_t before = column_.values.size();
      reserve_ahead(row, 8 * chunk.size());
      auto* start = reinterpret_cast<uint64_t*>(column_.values.extend(8 * chunk.size()));
      uint64_t* out = start;
      uint64_t unused;
      const NumberFault fault = decode_varints(chunk, out, unused);
      const auto count = static_cast<size_t>(out - start);
      const bool is_sound = fault == NumberFault::kNone && count % spec_.unit == 0;
      column_.values.truncate(before + (is_sound ? 8 * count : 0));
      if (!is_sound) return false;
      units = count / spec_.unit;
      break;
    }
    case Fast::kSlice: {
      if (spec_.is_text && !is_utf8(chunk)) return false;
      const Slice slice{static_cast<uint64_t>(chunk.data() - buffer_.data()), chunk.size()};
      std::memcpy(reserve_cells(1), &slice, sizeof slice);
      break;
    }
    case Fast::kNone:
    case Fast::kFloat:
    case Fast::kInteger:
      return false;
  }
  end_value(row, units);
  return true;
}

Outcome ColumnBuilder::append_list(Kind kind, const Pieces& list) {
  size_t count;
  if (!count_values(list, kind, count)) return {.code = FaultCode::kMalformed};
  const auto got = static_cast<int64_t>(count);
  if (kind != spec_.kind) {
    return {FaultCode::kKind, 0, static_cast<int64_t>(spec_.kind), static_cast<int64_t>(kind)};
  }
  if (spec_.cell == Cell::kRaw) return append_raw(list, count);
  const bool fits = spec_.has_fixed_units() ? count == spec_.unit : count % spec_.unit == 0;
  if (!fits) return {FaultCode::kCount, 0, static_cast<int64_t>(spec_.unit), got};
  const size_t units = spec_.has_fixed_units() ? 1 : count / spec_.unit;
  Outcome outcome;
  if (spec_.cell == Cell::kSlice) {
    outcome = append_slices(list, count);
  } else if (spec_.kind == Kind::kFloat) {
    append_floats(list, count);
  } else {
    outcome = append_numbers(list, count);
  }
  outcome.units = units;
  return outcome;
}

void ColumnBuilder::end_step(size_t units) {
  if (spec_.layout != Layout::kNestedSteps) return;
  Buffer& inner = column_.inner_splits;
  int64_t last;
  std::memcpy(&last, inner.data() + inner.size() - 8, 8);
  last += static_cast<int64_t>(units);
  std::memcpy(inner.extend(8), &last, 8);
}

bool ColumnBuilder::fill_absent(size_t row) {
  if (!spec_.is_optional) return false;
  begin_value(row);
  const std::vector<uint8_t>& value = spec_.default_value;
  if (!value.empty()) {
    std::memcpy(is_fixed_ ? fixed_ : column_.values.extend(value.size()), value.data(),
                value.size());
  } else if (is_fixed_ && unit_bytes_ > 0) {
    std::memset(fixed_, 0, unit_bytes_);
  }
  end_value(row, value.empty() ? 0 : value.size() / unit_bytes_);
  column_.present.data()[row] = 0;
  return true;
}

// Returns room for `count` cells: at the row's fixed position, or at the end.
uint8_t* ColumnBuilder::reserve_cells(size_t count) {
  return is_fixed_ ? fixed_ : column_.values.extend(count * cell_bytes(spec_.cell));
}

void ColumnBuilder::append_floats(const Pieces& list, size_t count) {
  uint8_t* out = reserve_cells(count);
  const auto take = [&](const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(out, from, bytes);
    out += bytes;
    return true;
  };
  for (const ByteSpan piece : list) {
    walk_numbers(
        piece, Kind::kFloat, [&](ByteSpan chunk) { return take(chunk.data(), chunk.size()); },
        [&](uint64_t bits) { return take(&bits, 4); });
  }
}

Outcome ColumnBuilder::append_numbers(const Pieces& list, size_t count) {
  uint8_t* out = reserve_cells(count);
  return with_integer(spec_.cell, [&](auto zero) -> Outcome {
    auto* numbers = reinterpret_cast<decltype(zero)*>(out);
    NumberFault fault = NumberFault::kNone;
    uint64_t bad = 0;
    for (const ByteSpan piece : list) {
      walk_numbers(
          piece, Kind::kInt64,
          [&](ByteSpan chunk) {
            fault = decode_varints(chunk, numbers, bad);
            return fault == NumberFault::kNone;
          },
          [&](uint64_t value) {
            if (store_number(value, numbers++)) return true;
            fault = NumberFault::kRange;
            bad = value;
            return false;
          });
      if (fault == NumberFault::kMalformed) return {.code = FaultCode::kMalformed};
      if (fault == NumberFault::kRange) {
        return {.code = FaultCode::kRange, .got = static_cast<int64_t>(bad)};
      }
    }
    return {};
  });
}

Outcome ColumnBuilder::append_slices(const Pieces& list, size_t count) {
  uint8_t* out = reserve_cells(count);
  Outcome outcome;
  for (const ByteSpan piece : list) {
    for_each_field(piece, kFieldOneBytes, [&](ByteSpan bytes) {
      if (spec_.is_text && !is_utf8(bytes)) outcome.code = FaultCode::kText;
      const Slice slice{static_cast<uint64_t>(bytes.data() - buffer_.data()), bytes.size()};
      std::memcpy(out, &slice, sizeof slice);
      out += sizeof slice;
      return true;
    });
  }
  return outcome;
}

// A raw tensor is one byte string of one unit, or of any number of them.
Outcome ColumnBuilder::append_raw(const Pieces& list, size_t count) {
  if (count != 1) return {FaultCode::kCount, 0, 1, static_cast<int64_t>(count)};
  ByteSpan raw;
  for (const ByteSpan piece : list) {
    for_each_field(piece, kFieldOneBytes, [&](ByteSpan bytes) {
      raw = bytes;
      return true;
    });
  }
  const bool fits =
      spec_.has_fixed_units() ? raw.size() == spec_.unit : raw.size() % spec_.unit == 0;
  if (!fits) {
    return {FaultCode::kRawBytes, 0, static_cast<int64_t>(spec_.unit),
            static_cast<int64_t>(raw.size())};
  }
  if (!raw.empty()) std::memcpy(reserve_cells(raw.size()), raw.data(), raw.size());
  return {.units = spec_.has_fixed_units() ? 1 : raw.size() / spec_.unit};
}

}  // namespace datum
