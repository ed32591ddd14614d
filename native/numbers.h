// Packed varints decoded to integers of any width, with range checks.
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

// Stores an int64 from the wire as T: uint64 is two's complement, narrower types must fit.
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

// Decodes varints as long as a word of eight bytes contains a whole one. It mostly contains two of
// at most four bytes each, which are placed side by side and gathered together.
inline const uint8_t* decode_words(const uint8_t* at, const uint8_t* end, uint64_t*& out) {
  while (end - at >= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    const uint64_t stops = ~word & kContinuationBits;  // where varints end
    if (stops == kContinuationBits) {                  // eight numbers below 128
      for (int i = 0; i < 8; ++i) out[i] = (word >> (8 * i)) & 0xff;
      out += 8;
      at += 8;
      continue;
    }
    if (stops == 0) break;
    const uint64_t later_stops = stops & (stops - 1);
    const uint64_t upto_first = stops ^ (stops - 1);
    const uint64_t upto_second = later_stops ^ (later_stops - 1);
    const int first_bits = std::countr_zero(stops) + 1;
    const int both_bits = std::countr_zero(later_stops | (uint64_t{1} << 63)) + 1;
    if (later_stops == 0 || first_bits > 32 || both_bits - first_bits > 32) {
      *out++ = gather_sevens(word & upto_first);
      at += first_bits / 8;
      continue;
    }
    uint64_t pair = (word & upto_first) | ((word & upto_second & ~upto_first) << (32 - first_bits));
    pair = (pair & 0x007f007f007f007full) | ((pair & 0x7f007f007f007f00ull) >> 1);
    pair = (pair & 0x00003fff00003fffull) | ((pair & 0x3fff00003fff0000ull) >> 2);
    out[0] = pair & 0xffffffff;
    out[1] = pair >> 32;
    out += 2;
    at += both_bits / 8;
  }
  return at;
}

// Decodes all varints of `chunk` to `out` and advances it; there must be room for one number per
// byte. On kRange `bad` is the value that did not fit.
template <typename T>
NumberFault decode_varints(ByteSpan chunk, T*& out, uint64_t& bad) {
  const uint8_t* at = chunk.data();
  const uint8_t* end = at + chunk.size();
  while (at < end) {
    if constexpr (std::is_same_v<T, uint64_t>) {
      at = decode_words(at, end, out);
      if (at == end) break;
    }
    WireReader reader({at, end});
    uint64_t value;
    if (!reader.read_varint(value)) return NumberFault::kMalformed;
    at = reader.position();
    if (!store_number(value, out++)) {
      bad = value;
      return NumberFault::kRange;
    }
  }
  return NumberFault::kNone;
}

}  // namespace datum
