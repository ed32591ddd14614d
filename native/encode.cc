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
constexpr size_t kMaxVarint = 10;

// Consecutive values of one source that go into one Feature.
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

// Writes the records of one message type, each before the one that was written last.
class RecordEncoder {
 public:
  RecordEncoder(std::span<const ColumnSource> context, std::span<const ColumnSource> lists)
      : context_(context), lists_(lists), out_(kFirstCapacity), heads_(context.size()) {
    for (size_t i = 0; i < context.size(); ++i) heads_[i] = constant_head(context[i]);
  }

  // False when the record is too large.
  bool write(size_t row) {
    const size_t before = out_.size();
    out_.reserve(0);
    out_.put(kFooterBytes);
    if (!lists_.empty()) write_map(lists_, {}, kFieldTwoBytes, row);
    write_map(context_, heads_, kFieldOneBytes, row);
    const size_t payload_bytes = out_.size() - before - kFooterBytes;
    uint8_t* payload = out_.data();
    write_frame_footer(payload + payload_bytes, payload, payload_bytes);
    out_.reserve(0);
    write_frame_header(out_.put(kHeaderBytes), payload_bytes);
    return payload_bytes <= kMaxRecordBytes;
  }

  BackwardBuffer& out() { return out_; }

 private:
  static constexpr size_t kFirstCapacity = 1 << 16;

  // Of a source whose values always take the same room, all of an entry that comes before them.
  static std::string constant_head(const ColumnSource& source) {
    const bool is_constant = source.cell == Cell::kFloat32 || source.cell == Cell::kRaw;
    if (source.layout != Layout::kFixed || !is_constant || source.unit == 0) return {};
    const size_t body = source.unit * cell_bytes(source.cell);
    BackwardBuffer head(0);
    head.reserve(source.key.size());
    put_head(head, kFieldOneBytes, body);
    put_head(head, kind_tag(source), body + head.size());
    put_entry_head(head, source, body + head.size(), body);
    return {reinterpret_cast<const char*>(head.data()), head.size()};
  }

  static uint32_t kind_tag(const ColumnSource& source) {
    return make_tag(static_cast<uint32_t>(source.kind), WireType::kBytes);
  }
  static void put_head(BackwardBuffer& out, uint32_t tag, size_t content) {
    out.put_varint(content);
    out.put_byte(static_cast<uint8_t>(tag));
  }
  // The entry around a value of `value_bytes`; `beyond` of them are not in `out`.
  static void put_entry_head(BackwardBuffer& out, const ColumnSource& source, size_t value_bytes,
                             size_t beyond) {
    const size_t before = out.size() + beyond - value_bytes;
    put_head(out, kFieldTwoBytes, value_bytes);
    out.put_bytes(source.key.data(), source.key.size());
    put_head(out, kFieldOneBytes, source.key.size());
    put_head(out, kFieldOneBytes, out.size() + beyond - before);
  }

  void write_map(std::span<const ColumnSource> sources, std::span<const std::string> heads,
                 uint32_t tag, size_t row) {
    const size_t before = out_.size();
    for (size_t i = sources.size(); i-- > 0;) {
      const ColumnSource& source = sources[i];
      if (source.present != nullptr && source.present[row] == 0) continue;
      if (!heads.empty() && !heads[i].empty()) {
        write_constant(source, heads[i], row);
        continue;
      }
      const size_t value_start = out_.size();
      if (source.is_sequence()) {
        write_feature_list(source, row);
      } else {
        write_feature(source, row_range(source, row));
      }
      out_.reserve(source.key.size());
      put_entry_head(out_, source, out_.size() - value_start, 0);
    }
    out_.reserve(0);
    put_head(out_, tag, out_.size() - before);
  }

  void write_constant(const ColumnSource& source, const std::string& head, size_t row) {
    const size_t body = source.unit * cell_bytes(source.cell);
    out_.reserve(body + head.size());
    out_.put_bytes(source.values + row * body, body);
    out_.put_bytes(head.data(), head.size());
  }

  void write_feature_list(const ColumnSource& source, size_t row) {
    for (int64_t step = source.splits[row + 1]; step-- > source.splits[row];) {
      const size_t before = out_.size();
      write_feature(source, step_range(source, static_cast<size_t>(step)));
      put_head(out_, kFieldOneBytes, out_.size() - before);
    }
  }

  void write_feature(const ColumnSource& source, Range range) {
    const size_t before = out_.size();
    if (source.cell == Cell::kRaw || (range.count > 0 && source.kind == Kind::kFloat)) {
      const size_t cell = cell_bytes(source.cell);
      out_.reserve(cell * range.count);
      out_.put_bytes(source.values + cell * range.first, cell * range.count);
      put_head(out_, kFieldOneBytes, cell * range.count);
    } else if (source.kind == Kind::kBytes) {
      write_strings(source, range);
    } else if (range.count > 0) {
      write_integers(source, range);
    }
    out_.reserve(0);
    put_head(out_, kind_tag(source), out_.size() - before);
  }

  void write_integers(const ColumnSource& source, Range range) {
    const size_t before = out_.size();
    out_.reserve(kMaxVarint * range.count);
    with_integer(source.cell, [&](auto zero) {
      const auto* values = reinterpret_cast<const decltype(zero)*>(source.values) + range.first;
      for (size_t i = range.count; i-- > 0;) {
        out_.put_varint(static_cast<uint64_t>(static_cast<int64_t>(values[i])));
      }
    });
    put_head(out_, kFieldOneBytes, out_.size() - before);
  }

  void write_strings(const ColumnSource& source, Range range) {
    for (size_t i = range.count; i-- > 0;) {
      const ByteSpan string = source.strings[range.first + i];
      out_.reserve(string.size());
      out_.put_bytes(string.data(), string.size());
      put_head(out_, kFieldOneBytes, string.size());
    }
  }

  std::span<const ColumnSource> context_;
  std::span<const ColumnSource> lists_;
  BackwardBuffer out_;
  std::vector<std::string> heads_;
};

// Whether `splits` climbs from 0 or more to at most `limit`.
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

// Moves what the encoders wrote, one after the other, into one buffer.
void join(std::vector<RecordEncoder>& encoders, Encoded& encoded) {
  if (encoders.size() == 1) {
    encoded.framed = encoders[0].out().release(encoded.start);
    return;
  }
  std::vector<size_t> starts;
  size_t total = 0;
  for (RecordEncoder& encoder : encoders) {
    starts.push_back(total);
    total += encoder.out().size();
  }
  uint8_t* framed = encoded.framed.extend(total);
  run_parallel(encoders.size(), [&](size_t part) {
    const BackwardBuffer& out = encoders[part].out();
    std::memcpy(framed + starts[part], out.data(), out.size());
  });
}

}  // namespace

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

  const size_t parts = std::clamp<size_t>(threads, 1, rows / kMinRowsPerThread + 1);
  std::vector<RecordEncoder> encoders;
  for (size_t part = 0; part < parts; ++part) {
    encoders.emplace_back(std::span(sources.begin(), first_list),
                          std::span(first_list, sources.end()));
  }
  std::vector<uint64_t> sizes(rows);  // of the frames
  std::vector<size_t> too_large(parts, SIZE_MAX);
  run_parallel(parts, [&](size_t part) {
    RecordEncoder& encoder = encoders[part];
    for (size_t row = rows * (part + 1) / parts; row-- > rows * part / parts;) {
      const size_t before = encoder.out().size();
      if (!encoder.write(row)) too_large[part] = row;
      sizes[row] = encoder.out().size() - before;
    }
  });
  const size_t oversized = *std::min_element(too_large.begin(), too_large.end());
  if (oversized != SIZE_MAX) return {EncodeError::kRecordTooLarge, oversized};
  join(encoders, encoded);
  encoded.offsets.resize(rows);
  uint64_t offset = 0;
  for (size_t row = 0; row < rows; offset += sizes[row++]) encoded.offsets[row] = offset;
  return {};
}

void frame_payloads(const std::vector<ByteSpan>& payloads, Encoded& encoded) {
  size_t total = 0;
  for (const ByteSpan payload : payloads) {
    encoded.offsets.push_back(total);
    total += payload.size() + kFrameBytes;
  }
  uint8_t* out = encoded.framed.extend(total);
  for (const ByteSpan payload : payloads) {
    write_frame_header(out, payload.size());
    if (!payload.empty()) std::memcpy(out + kHeaderBytes, payload.data(), payload.size());
    write_frame_footer(out + kHeaderBytes + payload.size(), payload.data(), payload.size());
    out += payload.size() + kFrameBytes;
  }
}

}  // namespace datum
