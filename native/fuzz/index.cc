// Fuzzes the index: what is accepted is valid and is written the same again.
#include "index.h"

#include "checks.h"
#include "crc32c.h"
#include "framing.h"

using namespace datum;
using datum::fuzz::Input;
using datum::fuzz::require;

namespace {

std::vector<uint64_t> read_offsets(const IndexView& view) {
  std::vector<uint64_t> offsets(static_cast<size_t>(view.records));
  if (!offsets.empty()) std::memcpy(offsets.data(), view.table, 8 * offsets.size());
  return offsets;
}

void read_back(ByteSpan bytes) {
  const std::vector<uint8_t> file = fuzz::exact_copy(bytes);
  IndexView view;
  if (read_index(file, view) != IndexFault::kNone) return;
  const std::vector<uint64_t> offsets = read_offsets(view);
  uint64_t end = 0;
  for (const uint64_t offset : offsets) {
    require(offset == 0 || offset >= end, "no record starts within the one before");
    end = offset + kFrameBytes;
    require(end > offset && end <= view.stream_bytes, "every record has room");
  }
  require(!offsets.empty() || view.stream_bytes == 0, "no records, no bytes");
  require(view.stream_bytes <= INT64_MAX, "offsets fit signed integers");
  require(fuzz::same_bytes(write_index(offsets, view.stream_bytes, view.shard_crc), file),
          "what was read is written the same");
}

// Payload lengths from the input make an index that must be accepted.
void write_and_read(Input input) {
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  while (!input.rest().empty()) {
    offsets.push_back(end);
    end += kFrameBytes + (input.byte() | uint64_t{input.byte()} << (input.byte() % 40));
  }
  const std::vector<uint8_t> file = write_index(offsets, end);
  IndexView view;
  require(read_index(file, view) == IndexFault::kNone, "a written index is read");
  require(read_offsets(view) == offsets && view.stream_bytes == end, "and is the same");
  for (size_t at = 0; at < file.size(); at += 1 + file.size() / 8) {
    std::vector<uint8_t> damaged = file;
    damaged[at] ^= static_cast<uint8_t>(1 << at % 8);
    require(read_index(damaged, view) != IndexFault::kNone, "a flipped bit is noticed");
    require(read_index(ByteSpan(file).first(at), view) != IndexFault::kNone, "so is a cut");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_back({data, size});
  write_and_read(Input(data, size));
  return 0;
}

// Corrects size and checksums, so that mutations get past them.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (size < kIndexHeaderBytes || seed % 8 == 0) return size;
  if (seed % 8 > 1) size -= (size - kIndexHeaderBytes) % 8;
  const size_t table_bytes = size - kIndexHeaderBytes;
  const uint64_t records = table_bytes / 8;
  if (seed % 8 > 2) std::memcpy(data + 16, &records, 8);
  const uint32_t table_crc = mask_crc(crc32c(data + kIndexHeaderBytes, table_bytes));
  if (seed % 8 > 3) std::memcpy(data + 32, &table_crc, 4);
  const uint32_t header_crc = mask_crc(crc32c(data, 36));
  std::memcpy(data + 36, &header_crc, 4);
  return size;
}
