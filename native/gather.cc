#include "gather.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "parallel.h"

namespace datum {
namespace {

constexpr size_t kMinBytesPerThread = size_t{1} << 20;  // below this a thread costs too much

uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

void gather(ByteSpan data, std::span<const int64_t> starts, std::span<const int64_t> sizes,
            size_t threads, Buffer& out) {
  const auto limit = static_cast<int64_t>(data.size());
  std::vector<size_t> places(starts.size() + 1);
  for (size_t i = 0; i < starts.size(); ++i) {
    if (starts[i] < 0 || starts[i] > limit || sizes[i] < 0 || sizes[i] > limit - starts[i]) {
      throw std::out_of_range("a piece is outside the data");
    }
    places[i + 1] = places[i] + static_cast<size_t>(sizes[i]);
  }
  const size_t total = places.back();
  uint8_t* target = out.extend(total);
  const size_t parts = std::clamp<size_t>(threads, 1, total / kMinBytesPerThread + 1);
  const std::vector<size_t> bounds =
      split_evenly(starts.size(), parts, [&](size_t i) { return sizes[i] + 1; });
  run_parallel(parts, [&](size_t part) {
    for (size_t i = bounds[part]; i < bounds[part + 1]; ++i) {
      if (sizes[i] == 0) continue;
      std::memcpy(target + places[i], data.data() + starts[i], static_cast<size_t>(sizes[i]));
    }
  });
}

uint64_t hash_key(ByteSpan key) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const uint8_t byte : key) hash = (hash ^ byte) * 0x100000001b3u;
  return mix(hash);
}

}  // namespace datum
