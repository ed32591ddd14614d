// The index of a shard: the offset of each record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "wire.h"

namespace datum {

// docs/concepts/format.md specifies the layout of the file.
constexpr std::string_view kIndexMagic = "DATUMIDX";
constexpr uint32_t kIndexVersion = 1;
constexpr size_t kIndexHeaderBytes = 40;

enum class IndexFault : uint8_t {
  kNone,
  kTruncated,
  kMagic,
  kVersion,
  kHeaderChecksum,
  kSize,
  kTableChecksum,
  kOrder,
};

struct IndexView {
  uint64_t records = 0;
  uint64_t stream_bytes = 0;       // of the shard, decompressed
  uint32_t shard_crc = 0;          // of the whole file on disk; 0 if unknown
  const uint8_t* table = nullptr;  // `records` little-endian u64 offsets, possibly unaligned
};

// Validates every field, both checksums and the order of the offsets.
IndexFault read_index(ByteSpan file, IndexView& view);

// Validates only the header, and that the file has room for the offsets.
IndexFault read_index_header(ByteSpan file, IndexView& view);

// Returns the whole file for records that start at `offsets` and fill `stream_bytes` without gaps.
// The caller guarantees `offsets_are_sound`.
std::vector<uint8_t> write_index(std::span<const uint64_t> offsets, uint64_t stream_bytes,
                                 uint32_t shard_crc = 0);

// Whether the offsets start at 0, leave room for each frame and end within `stream_bytes`.
bool offsets_are_sound(const uint8_t* table, uint64_t records, uint64_t stream_bytes);

}  // namespace datum
