// Protocol-buffer wire format: the only code that reads untrusted message bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace datum {

static_assert(std::endian::native == std::endian::little, "Datum needs a little-endian processor");

using ByteSpan = std::span<const uint8_t>;

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

constexpr uint32_t make_tag(uint32_t field, WireType type) {
  return (field << 3) | static_cast<uint32_t>(type);
}

// A cursor over one message. Every read checks its bounds once; a read that fails returns false
// and the message is malformed. No read moves past `end`.
class WireReader {
 public:
  explicit WireReader(ByteSpan bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool at_end() const { return at_ == end_; }
  const uint8_t* position() const { return at_; }
  ByteSpan rest() const { return {at_, end_}; }

  // Reads at most ten bytes; bits beyond the 64th are dropped, like in protobuf.
  bool read_varint(uint64_t& value) {
    if (at_ < end_ && *at_ < 0x80) {
      value = *at_++;
      return true;
    }
    return read_long_varint(value);
  }

  // A tag is a varint of at most 32 bits whose field number is not zero.
  bool read_tag(uint32_t& tag) {
    uint64_t value;
    const uint8_t* start = at_;
    if (!read_varint(value) || value > UINT32_MAX || at_ - start > kMaxShortVarint ||
        (value >> 3) == 0) {
      return false;
    }
    tag = static_cast<uint32_t>(value);
    return true;
  }

  // Like protobuf, refuses a length of more than five bytes.
  bool read_bytes(ByteSpan& bytes) {
    uint64_t size;
    const uint8_t* start = at_;
    if (!read_varint(size) || at_ - start > kMaxShortVarint ||
        size > static_cast<uint64_t>(end_ - at_)) {
      return false;
    }
    bytes = {at_, static_cast<size_t>(size)};
    at_ += size;
    return true;
  }

  bool read_fixed32(uint32_t& value) {
    if (end_ - at_ < 4) return false;
    std::memcpy(&value, at_, 4);
    at_ += 4;
    return true;
  }

  // Skips the value of an unknown field, including groups.
  bool skip(uint32_t tag) { return skip(tag, kMaxGroupDepth); }

 private:
  static constexpr ptrdiff_t kMaxShortVarint = 5;  // bytes of a tag or length: 32 bits
  // protobuf stops at 100 levels of messages and groups together; real messages have no groups.
  static constexpr int kMaxGroupDepth = 32;

  bool read_long_varint(uint64_t& value) {
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (at_ == end_) return false;
      const uint8_t byte = *at_++;
      result |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        value = result;
        return true;
      }
    }
    return false;
  }

  bool advance(size_t size) {
    if (static_cast<size_t>(end_ - at_) < size) return false;
    at_ += size;
    return true;
  }

  bool skip(uint32_t tag, int depth) {
    switch (static_cast<WireType>(tag & 7)) {
      case WireType::kVarint: {
        uint64_t ignored;
        return read_varint(ignored);
      }
      case WireType::kFixed64:
        return advance(8);
      case WireType::kBytes: {
        ByteSpan ignored;
        return read_bytes(ignored);
      }
      case WireType::kStartGroup:
        return skip_group(tag >> 3, depth);
      case WireType::kFixed32:
        return advance(4);
      default:
        return false;
    }
  }

  bool skip_group(uint32_t field, int depth) {
    if (depth == 0) return false;
    uint32_t tag;
    while (read_tag(tag)) {
      if (tag == make_tag(field, WireType::kEndGroup)) return true;
      if (!skip(tag, depth - 1)) return false;
    }
    return false;
  }

  const uint8_t* at_;
  const uint8_t* end_;
};

}  // namespace datum
