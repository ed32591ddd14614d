#include "encode.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "framing.h"
#include "parallel.h"

namespace datum {
namespace {

constexpr size_t kMinBytesPerThread = 256 * 1024;          // see parse.cc
constexpr size_t kMaxRecordBytes = (size_t{1} << 31) - 1;  // protobuf's own limit

size_t varint_bytes(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

uint8_t* write_varint(uint8_t* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<uint8_t>(value);
  return out;
}

uint8_t* write_bytes(uint8_t* out, const void* from, size_t size) {
  if (size > 0) std::memcpy(out, from, size);
  return out + size;
}

// A length-delimited field: one-byte tag, length, content.
size_t field_bytes(size_t content) { return 1 + varint_bytes(content) + content; }

uint8_t* write_field_head(uint8_t* out, uint32_t tag, size_t content) {
  *out++ = static_cast<uint8_t>(tag);
  return write_varint(out, content);
}

template <typename T>
uint64_t wire_value(T value) {
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

// Consecutive values of one source that go into one Feature.
struct Range {
  size_t first;  // cells
  size_t count;
};

Range range_of_units(const ColumnSource& source, const int64_t* splits, size_t at) {
  const auto first = static_cast<size_t>(splits[at]);
  return {first * source.unit, (static_cast<size_t>(splits[at + 1]) - first) * source.unit};
}

size_t packed_bytes(const ColumnSource& source, Range range) {
  return with_integer(source.cell, [&](auto zero) {
    const auto* values = reinterpret_cast<const decltype(zero)*>(source.values) + range.first;
    size_t total = 0;
    for (size_t i = 0; i < range.count; ++i) total += varint_bytes(wire_value(values[i]));
    return total;
  });
}

// The size of the BytesList, FloatList or Int64List of a range.
size_t list_bytes(const ColumnSource& source, Range range) {
  if (source.cell == Cell::kRaw) return field_bytes(range.count);
  if (range.count == 0) return 0;
  switch (source.kind) {
    case Kind::kFloat:
      return field_bytes(4 * range.count);
    case Kind::kInt64:
      return field_bytes(packed_bytes(source, range));
    default: {
      size_t total = 0;
      for (size_t i = 0; i < range.count; ++i) {
        total += field_bytes(source.strings[range.first + i].size());
      }
      return total;
    }
  }
}

uint8_t* write_integers(uint8_t* out, const ColumnSource& source, Range range) {
  out = write_field_head(out, kFieldOneBytes, packed_bytes(source, range));
  return with_integer(source.cell, [&](auto zero) {
    const auto* values = reinterpret_cast<const decltype(zero)*>(source.values) + range.first;
    for (size_t i = 0; i < range.count; ++i) out = write_varint(out, wire_value(values[i]));
    return out;
  });
}

uint8_t* write_list(uint8_t* out, const ColumnSource& source, Range range) {
  if (source.cell == Cell::kRaw) {
    out = write_field_head(out, kFieldOneBytes, range.count);
    return write_bytes(out, source.values + range.first, range.count);
  }
  if (range.count == 0) return out;
  switch (source.kind) {
    case Kind::kFloat:
      out = write_field_head(out, kFieldOneBytes, 4 * range.count);
      return write_bytes(out, source.values + 4 * range.first, 4 * range.count);
    case Kind::kInt64:
      return write_integers(out, source, range);
    default:
      for (size_t i = 0; i < range.count; ++i) {
        const ByteSpan string = source.strings[range.first + i];
        out = write_field_head(out, kFieldOneBytes, string.size());
        out = write_bytes(out, string.data(), string.size());
      }
      return out;
  }
}

uint8_t* write_feature(uint8_t* out, const ColumnSource& source, Range range) {
  const uint32_t tag = make_tag(static_cast<uint32_t>(source.kind), WireType::kBytes);
  return write_list(write_field_head(out, tag, list_bytes(source, range)), source, range);
}

// The range of one row (context), or of one step of it (sequence).
Range row_range(const ColumnSource& source, size_t row) {
  if (source.layout == Layout::kFixed) return {row * source.unit, source.unit};
  return range_of_units(source, source.splits, row);
}

Range step_range(const ColumnSource& source, size_t step) {
  if (source.layout == Layout::kSteps) return {step * source.unit, source.unit};
  return range_of_units(source, source.inner_splits, step);
}

// The size of the map value: a Feature, or a FeatureList of them.
size_t value_bytes(const ColumnSource& source, size_t row) {
  if (!source.is_sequence()) return field_bytes(list_bytes(source, row_range(source, row)));
  size_t total = 0;
  for (auto step = source.splits[row]; step < source.splits[row + 1]; ++step) {
    const Range range = step_range(source, static_cast<size_t>(step));
    total += field_bytes(field_bytes(list_bytes(source, range)));
  }
  return total;
}

uint8_t* write_value(uint8_t* out, const ColumnSource& source, size_t row) {
  if (!source.is_sequence()) return write_feature(out, source, row_range(source, row));
  for (auto step = source.splits[row]; step < source.splits[row + 1]; ++step) {
    const Range range = step_range(source, static_cast<size_t>(step));
    out = write_field_head(out, kFieldOneBytes, field_bytes(list_bytes(source, range)));
    out = write_feature(out, source, range);
  }
  return out;
}

bool is_present(const ColumnSource& source, size_t row) {
  return source.present == nullptr || source.present[row] != 0;
}

size_t entry_bytes(const ColumnSource& source, size_t row) {
  return field_bytes(source.key.size()) + field_bytes(value_bytes(source, row));
}

size_t map_bytes(std::span<const ColumnSource> sources, size_t row) {
  size_t total = 0;
  for (const ColumnSource& source : sources) {
    if (is_present(source, row)) total += field_bytes(entry_bytes(source, row));
  }
  return total;
}

uint8_t* write_map(uint8_t* out, std::span<const ColumnSource> sources, size_t row) {
  for (const ColumnSource& source : sources) {
    if (!is_present(source, row)) continue;
    const size_t value = value_bytes(source, row);
    const size_t entry = field_bytes(source.key.size()) + field_bytes(value);
    out = write_field_head(out, kFieldOneBytes, entry);
    out = write_field_head(out, kFieldOneBytes, source.key.size());
    out = write_bytes(out, source.key.data(), source.key.size());
    out = write_field_head(out, kFieldTwoBytes, value);
    out = write_value(out, source, row);
  }
  return out;
}

// Sources in the order they are written: context before feature lists, each by key.
struct Message {
  std::span<const ColumnSource> context;
  std::span<const ColumnSource> lists;

  size_t bytes(size_t row) const {
    size_t total = field_bytes(map_bytes(context, row));
    if (!lists.empty()) total += field_bytes(map_bytes(lists, row));
    return total;
  }
  uint8_t* write(uint8_t* out, size_t row) const {
    out = write_field_head(out, kFieldOneBytes, map_bytes(context, row));
    out = write_map(out, context, row);
    if (lists.empty()) return out;
    out = write_field_head(out, kFieldTwoBytes, map_bytes(lists, row));
    return write_map(out, lists, row);
  }
};

// Whether `splits` climbs from 0 to at most `limit`.
bool are_splits_sound(const int64_t* splits, size_t entries, size_t limit) {
  if (entries == 0 || splits[0] < 0) return false;
  for (size_t i = 1; i < entries; ++i) {
    if (splits[i] < splits[i - 1]) return false;
  }
  return static_cast<size_t>(splits[entries - 1]) <= limit;
}

EncodeError check_source(const ColumnSource& source, size_t rows) {
  if (source.layout == Layout::kFixed) {
    return source.unit == 0 || source.values_count / source.unit >= rows ? EncodeError::kNone
                                                                         : EncodeError::kValues;
  }
  if (source.unit == 0) return EncodeError::kValues;
  const size_t units = source.values_count / source.unit;
  const bool is_nested = source.layout == Layout::kNestedSteps;
  if (is_nested && !are_splits_sound(source.inner_splits, source.inner_count, units)) {
    return EncodeError::kSplits;
  }
  const size_t limit = is_nested ? source.inner_count - 1 : units;
  return are_splits_sound(source.splits, rows + 1, limit) ? EncodeError::kNone
                                                          : EncodeError::kSplits;
}

// Lays out frames of the given payload sizes and lets `write(i, out)` fill in each payload.
template <typename Write>
void write_frames(const std::vector<size_t>& sizes, size_t threads, Encoded& encoded,
                  Write&& write) {
  const size_t rows = sizes.size();
  encoded.offsets.resize(rows);
  size_t total = 0;
  for (size_t i = 0; i < rows; ++i) {
    encoded.offsets[i] = total;
    total += sizes[i] + kFrameBytes;
  }
  uint8_t* out = encoded.framed.extend(total);
  const size_t parts = std::clamp<size_t>(std::min(threads, total / kMinBytesPerThread), 1,
                                          std::max<size_t>(rows, 1));
  const std::vector<size_t> bounds = split_evenly(rows, parts, [&](size_t i) { return sizes[i]; });
  run_parallel(parts, [&](size_t part) {
    for (size_t i = bounds[part]; i < bounds[part + 1]; ++i) {
      uint8_t* frame = out + encoded.offsets[i];
      uint8_t* payload = frame + kHeaderBytes;
      write_frame_header(frame, sizes[i]);
      write(i, payload);
      write_frame_footer(payload + sizes[i], payload, sizes[i]);
    }
  });
}

}  // namespace

EncodeFault encode_records(std::vector<ColumnSource> sources, size_t rows, size_t threads,
                           Encoded& encoded) {
  for (size_t c = 0; c < sources.size(); ++c) {
    const EncodeError error = check_source(sources[c], rows);
    if (error != EncodeError::kNone) return {error, c, 0};
  }
  std::sort(sources.begin(), sources.end(), [](const ColumnSource& a, const ColumnSource& b) {
    return std::pair{a.is_sequence(), std::string_view(a.key)} <
           std::pair{b.is_sequence(), std::string_view(b.key)};
  });
  const auto first_list = std::find_if(sources.begin(), sources.end(),
                                       [](const ColumnSource& s) { return s.is_sequence(); });
  const Message message{{sources.begin(), first_list}, {first_list, sources.end()}};

  std::vector<size_t> sizes(rows);
  const size_t parts = std::clamp<size_t>(threads, 1, rows / 1024 + 1);
  run_parallel(parts, [&](size_t part) {
    for (size_t i = rows * part / parts; i < rows * (part + 1) / parts; ++i) {
      sizes[i] = message.bytes(i);
    }
  });
  for (size_t i = 0; i < rows; ++i) {
    if (sizes[i] > kMaxRecordBytes) return {EncodeError::kRecordTooLarge, 0, i};
  }
  write_frames(sizes, threads, encoded, [&](size_t row, uint8_t* out) { message.write(out, row); });
  return {};
}

void frame_payloads(const std::vector<ByteSpan>& payloads, size_t threads, Encoded& encoded) {
  std::vector<size_t> sizes(payloads.size());
  for (size_t i = 0; i < payloads.size(); ++i) sizes[i] = payloads[i].size();
  write_frames(sizes, threads, encoded, [&](size_t i, uint8_t* out) {
    write_bytes(out, payloads[i].data(), payloads[i].size());
  });
}

}  // namespace datum
