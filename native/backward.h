// A buffer that is written from its end to its start.
//
// Protocol buffers put the length of a message before its content. Written backwards, the content
// comes first, so that every length is known when its turn comes and nothing is measured twice.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "columns.h"

namespace datum {

class BackwardBuffer {
 public:
  explicit BackwardBuffer(size_t capacity) { reallocate(capacity + kSlack); }

  size_t size() const { return capacity_ - start_; }
  const uint8_t* data() const { return memory_.data() + start_; }
  uint8_t* data() { return memory_.data() + start_; }

  // Makes room for `bytes`, and for a few tags and lengths beside them.
  void reserve(size_t bytes) {
    if (bytes + kSlack > start_) reallocate(2 * capacity_ + bytes + kSlack);
  }
  // What follows needs room that was reserved.
  uint8_t* put(size_t bytes) { return memory_.data() + (start_ -= bytes); }
  void put_bytes(const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(put(bytes), from, bytes);
  }
  void put_byte(uint8_t byte) { *put(1) = byte; }
  void put_varint(uint64_t value) {
    if (value < 0x80) return put_byte(static_cast<uint8_t>(value));
    uint8_t* out = put((static_cast<size_t>(std::bit_width(value)) + 6) / 7);
    for (; value >= 0x80; value >>= 7) *out++ = static_cast<uint8_t>(value | 0x80);
    *out = static_cast<uint8_t>(value);
  }

  // Gives the memory away, and where in it the content starts.
  Buffer release(size_t& start) {
    start = start_;
    return std::move(memory_);
  }

 private:
  static constexpr size_t kSlack = 64;

  void reallocate(size_t capacity) {
    Buffer larger;
    larger.extend(capacity);
    const size_t used = size();
    if (used > 0) std::memcpy(larger.data() + capacity - used, data(), used);
    memory_ = std::move(larger);
    start_ = capacity - used;
    capacity_ = capacity;
  }

  Buffer memory_;
  size_t capacity_ = 0;
  size_t start_ = 0;
};

}  // namespace datum
