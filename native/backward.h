// A writer from the end of a block to its start.
//
// Protocol buffers put the length of a message before its content. Written backwards, the content
// comes first, so that every length is known when it is written.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace datum {

// The size of `value` as a varint.
inline size_t varint_bytes(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

// The caller ensures that there is room.
class BackwardWriter {
 public:
  explicit BackwardWriter(uint8_t* end) : at_(end) {}

  uint8_t* position() const { return at_; }
  uint8_t* put(size_t bytes) { return at_ -= bytes; }
  void put_bytes(const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(put(bytes), from, bytes);
  }
  void put_byte(uint8_t byte) { *--at_ = byte; }
  void put_varint(uint64_t value) {
    if (value < 0x80) return put_byte(static_cast<uint8_t>(value));
    uint8_t* out = put(varint_bytes(value));
    for (; value >= 0x80; value >>= 7) *out++ = static_cast<uint8_t>(value | 0x80);
    *out = static_cast<uint8_t>(value);
  }
  // Writes the tag and length of a field whose content was written from `end` to here.
  void put_head(uint32_t tag, const uint8_t* end) {
    put_varint(static_cast<uint64_t>(end - at_));
    put_byte(static_cast<uint8_t>(tag));
  }

 private:
  uint8_t* at_;
};

}  // namespace datum
