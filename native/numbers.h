// Packed varints to integers of any width, checked for range.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "wire.h"

namespace datum {

constexpr uint64_t kContinuationBits = 0x8080808080808080ull;

enum class NumberFault : uint8_t { kNone, kMalformed, kRange };

// int64 from the wire into T: uint64 is two's complement, narrower types must hold the value.
template <typename T>
bool store_number(uint64_t wire, T* out) {
  const auto value = static_cast<int64_t>(wire);
  if constexpr (std::is_same_v<T, bool>) {
    if (wire > 1) return false;
  } else if constexpr (sizeof(T) < 8) {
    if (value < static_cast<int64_t>(std::numeric_limits<T>::min()) ||
        value > static_cast<int64_t>(std::numeric_limits<T>::max())) {
      return false;
    }
  }
  *out = static_cast<T>(value);
  return true;
}

// Gathers the seven low bits of each of the eight bytes of `word`.
inline uint64_t gather_sevens(uint64_t word) {
  word = (word & 0x007f007f007f007full) | ((word & 0x7f007f007f007f00ull) >> 1);
  word = (word & 0x00003fff00003fffull) | ((word & 0x3fff00003fff0000ull) >> 2);
  return (word & 0x000000000fffffffull) | ((word & 0x0fffffff00000000ull) >> 4);
}

// Decodes all varints of `chunk` to `out` and moves it past the last; there must be room for one
// number a byte. On kRange `bad` is the value that did not fit.
//
// A word of eight bytes most often holds two varints or more. Taking two at a time halves the chain
// of load, find the end, advance, that each number has to wait for.
template <typename T>
NumberFault decode_varints(ByteSpan chunk, T*& out, uint64_t& bad) {
  const uint8_t* at = chunk.data();
  const uint8_t* end = at + chunk.size();
  const auto store = [&](uint64_t value) {
    if (store_number(value, out++)) return true;
    bad = value;
    return false;
  };
  const auto take_one = [&](uint64_t word, uint64_t stops) {
    at += std::countr_zero(stops) / 8 + 1;
    return store(gather_sevens(word & (stops ^ (stops - 1))));
  };
  while (at < end) {
    uint64_t word = 0;
    if (end - at >= 8) std::memcpy(&word, at, 8);
    const uint64_t stops = ~word & kContinuationBits;
    if (stops == kContinuationBits && end - at >= 8) {  // eight numbers below 128
      for (int i = 0; i < 8; ++i, word >>= 8) {
        if (!store(word & 0xff)) return NumberFault::kRange;
      }
      at += 8;
      continue;
    }
    if (stops == 0 || end - at < 8) {  // nine or ten bytes, or the last few
      WireReader reader({at, end});
      uint64_t value;
      if (!reader.read_varint(value)) return NumberFault::kMalformed;
      at = reader.position();
      if (!store(value)) return NumberFault::kRange;
      continue;
    }
    const uint64_t later_stops = stops & (stops - 1);
    const int first_bits = std::countr_zero(stops) + 1;
    if (!take_one(word, stops)) return NumberFault::kRange;
    if (later_stops == 0) continue;
    if (!take_one(word >> first_bits, later_stops >> first_bits)) return NumberFault::kRange;
  }
  return NumberFault::kNone;
}

}  // namespace datum
