#include "index.h"

#include <cstring>

#include "crc32c.h"
#include "framing.h"

namespace datum {
namespace {

constexpr size_t kVersionAt = 8;
constexpr size_t kShardCrcAt = 12;
constexpr size_t kRecordsAt = 16;
constexpr size_t kStreamBytesAt = 24;
constexpr size_t kTableCrcAt = 32;
constexpr size_t kHeaderCrcAt = 36;

template <typename T>
T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
void store(uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

}  // namespace

bool offsets_are_sound(const uint8_t* table, uint64_t records, uint64_t stream_bytes) {
  if (records == 0) return stream_bytes == 0;
  if (stream_bytes > INT64_MAX) return false;
  uint64_t previous = load<uint64_t>(table);
  if (previous != 0) return false;
  for (uint64_t i = 1; i < records; ++i) {
    const uint64_t offset = load<uint64_t>(table + 8 * i);
    if (offset < previous || offset - previous < kFrameBytes) return false;
    previous = offset;
  }
  return stream_bytes >= previous && stream_bytes - previous >= kFrameBytes;
}

IndexFault read_index_header(ByteSpan file, IndexView& view) {
  if (file.size() < kIndexHeaderBytes) return IndexFault::kTruncated;
  const uint8_t* data = file.data();
  if (std::memcmp(data, kIndexMagic.data(), kIndexMagic.size()) != 0) return IndexFault::kMagic;
  if (mask_crc(crc32c(data, kHeaderCrcAt)) != load<uint32_t>(data + kHeaderCrcAt)) {
    return IndexFault::kHeaderChecksum;
  }
  if (load<uint32_t>(data + kVersionAt) != kIndexVersion) return IndexFault::kVersion;
  const uint64_t records = load<uint64_t>(data + kRecordsAt);
  const uint64_t table_bytes = file.size() - kIndexHeaderBytes;
  if (table_bytes % 8 != 0 || table_bytes / 8 != records) return IndexFault::kSize;
  view = {records, load<uint64_t>(data + kStreamBytesAt), load<uint32_t>(data + kShardCrcAt),
          data + kIndexHeaderBytes};
  return IndexFault::kNone;
}

IndexFault read_index(ByteSpan file, IndexView& view) {
  IndexView found;
  const IndexFault fault = read_index_header(file, found);
  if (fault != IndexFault::kNone) return fault;
  const uint32_t crc = mask_crc(crc32c(found.table, file.size() - kIndexHeaderBytes));
  if (crc != load<uint32_t>(file.data() + kTableCrcAt)) return IndexFault::kTableChecksum;
  if (!offsets_are_sound(found.table, found.records, found.stream_bytes)) return IndexFault::kOrder;
  view = found;
  return IndexFault::kNone;
}

std::vector<uint8_t> write_index(std::span<const uint64_t> offsets, uint64_t stream_bytes,
                                 uint32_t shard_crc) {
  std::vector<uint8_t> file(kIndexHeaderBytes + offsets.size_bytes());
  uint8_t* data = file.data();
  uint8_t* table = data + kIndexHeaderBytes;
  if (!offsets.empty()) std::memcpy(table, offsets.data(), offsets.size_bytes());
  std::memcpy(data, kIndexMagic.data(), kIndexMagic.size());
  store<uint32_t>(data + kVersionAt, kIndexVersion);
  store<uint32_t>(data + kShardCrcAt, shard_crc);
  store<uint64_t>(data + kRecordsAt, offsets.size());
  store<uint64_t>(data + kStreamBytesAt, stream_bytes);
  store<uint32_t>(data + kTableCrcAt, mask_crc(crc32c(table, offsets.size_bytes())));
  store<uint32_t>(data + kHeaderCrcAt, mask_crc(crc32c(data, kHeaderCrcAt)));
  return file;
}

}  // namespace datum
