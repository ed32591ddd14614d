// Shared code of the fuzz targets: reading an input, and stopping at the first broken promise.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "wire.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace datum::fuzz {

inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "ERROR: broken promise: %s\n", promise);
  std::abort();
}

// Reads small numbers from the front of an input; an exhausted input yields zeros.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(data, size) {}

  uint8_t byte() {
    if (rest_.empty()) return 0;
    const uint8_t value = rest_.front();
    rest_ = rest_.subspan(1);
    return value;
  }
  uint64_t word() {
    uint64_t value = 0;
    const size_t size = std::min<size_t>(8, rest_.size());
    if (size > 0) std::memcpy(&value, rest_.data(), size);
    rest_ = rest_.subspan(size);
    return value;
  }
  ByteSpan take(size_t size) {
    const ByteSpan taken = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  ByteSpan rest() const { return rest_; }

 private:
  ByteSpan rest_;
};

// A copy on the heap of exactly these bytes, so that reads past them are detected.
inline std::vector<uint8_t> exact_copy(ByteSpan bytes) {
  std::vector<uint8_t> copy(bytes.begin(), bytes.end());
  copy.shrink_to_fit();
  return copy;
}

inline bool same_bytes(ByteSpan a, ByteSpan b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace datum::fuzz
