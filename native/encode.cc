#include "encode.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "backward.h"
#include "framing.h"
#include "parallel.h"

namespace datum {
namespace {

constexpr size_t kMinRowsPerThread = 256;  // below this a thread costs more than it saves
constexpr size_t kMaxRecordBytes = (size_t{1} << 31) - 1;  // protobuf's own limit

// Consecutive values of one source in one Feature.
struct Range {
  size_t first;  // cells
  size_t count;
};

Range range_of_units(const ColumnSource& source, const int64_t* splits, size_t at) {
  const auto first = static_cast<size_t>(splits[at]);
  return {first * source.unit, (static_cast<size_t>(splits[at + 1]) - first) * source.unit};
}

Range row_range(const ColumnSource& source, size_t row) {
  if (source.layout == Layout::kFixed) return {row * source.unit, source.unit};
  return range_of_units(source, source.splits, row);
}

Range step_range(const ColumnSource& source, size_t step) {
  if (source.layout == Layout::kSteps) return {step * source.unit, source.unit};
  return range_of_units(source, source.inner_splits, step);
}

// A length-delimited field: one-byte tag, length, content.
size_t field_bytes(size_t content) { return 1 + varint_bytes(content) + content; }

template <typename T>
uint64_t wire_value(T value) {
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

uint32_t kind_tag(const ColumnSource& source) {
  return make_tag(static_cast<uint32_t>(source.kind), WireType::kBytes);
}

// Returns the size of the BytesList, FloatList or Int64List of a range.
size_t list_bytes(const ColumnSource& source, Range range) {
  if (source.cell == Cell::kRaw) return field_bytes(range.count);
  if (range.count == 0) return 0;
  if (source.kind == Kind::kFloat) return field_bytes(4 * range.count);
  size_t total = 0;
  if (source.kind == Kind::kBytes) {
    for (size_t i = 0; i < range.count; ++i) {
      total += field_bytes(source.strings[range.first + i].size());
    }
    return total;
  }
  with_integer(source.cell, [&](auto zero) {
    const auto* values = reinterpret_cast<const decltype(zero)*>(source.values) + range.first;
    for (size_t i = 0; i < range.count; ++i) total += varint_bytes(wire_value(values[i]));
  });
  return field_bytes(total);
}

// Returns the size of the value of one row: a Feature, or a FeatureList of them.
size_t value_bytes(const ColumnSource& source, size_t row) {
  if (!source.is_sequence()) return field_bytes(list_bytes(source, row_range(source, row)));
  size_t total = 0;
  for (auto step = source.splits[row]; step < source.splits[row + 1]; ++step) {
    const Range range = step_range(source, static_cast<size_t>(step));
    total += field_bytes(field_bytes(list_bytes(source, range)));
  }
  return total;
}

// Writes the records of one message type.
class RecordEncoder {
 public:
  RecordEncoder(std::span<const ColumnSource> context, std::span<const ColumnSource> lists)
      : context_(context), lists_(lists) {
    for (const ColumnSource& source : context) heads_.push_back(constant_head(source));
  }

  size_t payload_bytes(size_t row) const {
    size_t total = field_bytes(map_bytes(context_, heads_, row));
    if (!lists_.empty()) total += field_bytes(map_bytes(lists_, {}, row));
    return total;
  }

  // Writes the payload that ends at `end`.
  void write(size_t row, uint8_t* end) const {
    BackwardWriter out(end);
    if (!lists_.empty()) write_map(out, lists_, {}, kFieldTwoBytes, row);
    write_map(out, context_, heads_, kFieldOneBytes, row);
  }

 private:
  // For a source whose values always have the same size: everything in an entry before them.
  static std::string constant_head(const ColumnSource& source) {
    const bool is_constant = source.cell == Cell::kFloat32 || source.cell == Cell::kRaw;
    if (source.layout != Layout::kFixed || !is_constant || source.unit == 0) return {};
    constexpr size_t kHeads = 64;  // more than five tags and lengths take
    std::string room(source.key.size() + kHeads + body_bytes(source), '\0');
    auto* start = reinterpret_cast<uint8_t*>(room.data());
    uint8_t* end = start + room.size();
    BackwardWriter out(end);
    out.put(body_bytes(source));
    const uint8_t* body = out.position();
    out.put_head(kFieldOneBytes, end);
    out.put_head(kind_tag(source), end);
    put_entry_head(out, source, end);
    return {reinterpret_cast<const char*>(out.position()),
            static_cast<size_t>(body - out.position())};
  }

  static size_t body_bytes(const ColumnSource& source) {
    return source.unit * cell_bytes(source.cell);
  }

  // Writes everything of a map entry before a value that was written from `end` to here.
  static void put_entry_head(BackwardWriter& out, const ColumnSource& source, const uint8_t* end) {
    out.put_head(kFieldTwoBytes, end);
    const uint8_t* key_end = out.position();
    out.put_bytes(source.key.data(), source.key.size());
    out.put_head(kFieldOneBytes, key_end);
    out.put_head(kFieldOneBytes, end);
  }

  static size_t map_bytes(std::span<const ColumnSource> sources, std::span<const std::string> heads,
                          size_t row) {
    size_t total = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
      const ColumnSource& source = sources[i];
      if (!source.is_present(row)) continue;
      if (!heads.empty() && !heads[i].empty()) {
        total += heads[i].size() + body_bytes(source);
      } else {
        const size_t value = field_bytes(value_bytes(source, row));
        total += field_bytes(field_bytes(source.key.size()) + value);
      }
    }
    return total;
  }

  static void write_map(BackwardWriter& out, std::span<const ColumnSource> sources,
                        std::span<const std::string> heads, uint32_t tag, size_t row) {
    const uint8_t* map_end = out.position();
    for (size_t i = sources.size(); i-- > 0;) {
      const ColumnSource& source = sources[i];
      if (!source.is_present(row)) continue;
      if (!heads.empty() && !heads[i].empty()) {
        const size_t body = body_bytes(source);
        out.put_bytes(source.values + row * body, body);
        out.put_bytes(heads[i].data(), heads[i].size());
        continue;
      }
      const uint8_t* end = out.position();
      if (source.is_sequence()) {
        write_feature_list(out, source, row);
      } else {
        write_feature(out, source, row_range(source, row));
      }
      put_entry_head(out, source, end);
    }
    out.put_head(tag, map_end);
  }

  static void write_feature_list(BackwardWriter& out, const ColumnSource& source, size_t row) {
    for (int64_t step = source.splits[row + 1]; step-- > source.splits[row];) {
      const uint8_t* end = out.position();
      write_feature(out, source, step_range(source, static_cast<size_t>(step)));
      out.put_head(kFieldOneBytes, end);
    }
  }

  static void write_feature(BackwardWriter& out, const ColumnSource& source, Range range) {
    const uint8_t* end = out.position();
    if (source.cell == Cell::kRaw || (range.count > 0 && source.kind == Kind::kFloat)) {
      const size_t cell = cell_bytes(source.cell);
      out.put_bytes(source.values + cell * range.first, cell * range.count);
      out.put_head(kFieldOneBytes, end);
    } else if (source.kind == Kind::kBytes) {
      for (size_t i = range.count; i-- > 0;) {
        const ByteSpan string = source.strings[range.first + i];
        const uint8_t* string_end = out.position();
        out.put_bytes(string.data(), string.size());
        out.put_head(kFieldOneBytes, string_end);
      }
    } else if (range.count > 0) {
      with_integer(source.cell, [&](auto zero) {
        const auto* values = reinterpret_cast<const decltype(zero)*>(source.values) + range.first;
        for (size_t i = range.count; i-- > 0;) out.put_varint(wire_value(values[i]));
      });
      out.put_head(kFieldOneBytes, end);
    }
    out.put_head(kind_tag(source), end);
  }

  std::span<const ColumnSource> context_;
  std::span<const ColumnSource> lists_;
  std::vector<std::string> heads_;  // of `context_`; empty if not constant
};

// Returns whether `splits` increases from 0 or more to at most `limit`.
bool are_splits_sound(const int64_t* splits, size_t entries, size_t limit) {
  if (entries == 0 || splits[0] < 0) return false;
  for (size_t i = 1; i < entries; ++i) {
    if (splits[i] < splits[i - 1]) return false;
  }
  return static_cast<size_t>(splits[entries - 1]) <= limit;
}

// Lays out frames for payloads of these sizes; `write(row, end)` writes each payload.
template <typename Write>
void write_frames(const std::vector<size_t>& sizes, size_t parts, Encoded& encoded, Write&& write) {
  const size_t rows = sizes.size();
  encoded.offsets.resize(rows);
  size_t total = 0;
  for (size_t row = 0; row < rows; ++row) {
    encoded.offsets[row] = total;
    total += sizes[row] + kFrameBytes;
  }
  uint8_t* framed = encoded.framed.extend(total);
  const std::vector<size_t> bounds =
      split_evenly(rows, parts, [&](size_t row) { return sizes[row]; });
  run_parallel(parts, [&](size_t part) {
    for (size_t row = bounds[part]; row < bounds[part + 1]; ++row) {
      uint8_t* frame = framed + encoded.offsets[row];
      uint8_t* payload = frame + kHeaderBytes;
      write_frame_header(frame, sizes[row]);
      write(row, payload + sizes[row]);
      write_frame_footer(payload + sizes[row], payload, sizes[row]);
    }
  });
}

}  // namespace

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

EncodeFault encode_records(std::vector<ColumnSource> sources, size_t rows, size_t threads,
                           Encoded& encoded) {
  for (const ColumnSource& source : sources) {
    const EncodeError error = check_source(source, rows);
    if (error != EncodeError::kNone) return {error, 0};
  }
  std::sort(sources.begin(), sources.end(), [](const ColumnSource& a, const ColumnSource& b) {
    return std::pair{a.is_sequence(), std::string_view(a.key)} <
           std::pair{b.is_sequence(), std::string_view(b.key)};
  });
  const auto first_list = std::find_if(sources.begin(), sources.end(),
                                       [](const ColumnSource& s) { return s.is_sequence(); });

  const RecordEncoder encoder(std::span(sources.begin(), first_list),
                              std::span(first_list, sources.end()));
  const size_t parts = std::clamp<size_t>(threads, 1, rows / kMinRowsPerThread + 1);
  std::vector<size_t> sizes(rows);
  run_parallel(parts, [&](size_t part) {
    for (size_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
      sizes[row] = encoder.payload_bytes(row);
    }
  });
  const auto too_large =
      std::find_if(sizes.begin(), sizes.end(), [](size_t size) { return size > kMaxRecordBytes; });
  if (too_large != sizes.end()) {
    return {EncodeError::kRecordTooLarge, static_cast<size_t>(too_large - sizes.begin())};
  }
  write_frames(sizes, parts, encoded, [&](size_t row, uint8_t* end) { encoder.write(row, end); });
  return {};
}

void frame_payloads(const std::vector<ByteSpan>& payloads, Encoded& encoded) {
  std::vector<size_t> sizes;
  for (const ByteSpan payload : payloads) sizes.push_back(payload.size());
  write_frames(sizes, 1, encoded, [&](size_t row, uint8_t* end) {
    BackwardWriter(end).put_bytes(payloads[row].data(), payloads[row].size());
  });
}

}  // namespace datum
