// The delimiters, quotes and line ends of CSV text, found many at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "wire.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace datum {

constexpr uint8_t kCsvQuote = '"';

// Finds delimiters, quotes and line ends, 64 bytes at a time.
class CsvMarks {
 public:
  CsvMarks(ByteSpan text, uint8_t delimiter) : text_(text), delimiter_(delimiter) {}

  void seek(size_t position) {
    block_ = position / 64 * 64;
    mask_ = load();
    if (position % 64 != 0) mask_ &= ~uint64_t{0} << (position % 64);
  }

  // Returns the next position; the size of the text if there is none.
  size_t next() {
    while (mask_ == 0) {
      block_ += 64;
      if (block_ >= text_.size()) return block_ = text_.size();
      mask_ = load();
    }
    const size_t found = block_ + static_cast<size_t>(std::countr_zero(mask_));
    mask_ &= mask_ - 1;
    return found;
  }

 private:
  uint64_t load() const {
    if (block_ >= text_.size()) return 0;
    if (text_.size() - block_ >= 64) return find_marks(text_.data() + block_);
    uint8_t padded[64] = {};
    std::memcpy(padded, text_.data() + block_, text_.size() - block_);
    const size_t count = text_.size() - block_;
    return find_marks(padded) & ((uint64_t{1} << count) - 1);  // a delimiter may be NUL
  }

#if defined(__SSE2__)
  uint64_t find_marks(const uint8_t* bytes) const {
    uint64_t mask = 0;
    for (int i = 0; i < 4; ++i) {
      const __m128i sixteen = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes) + i);
      const auto equal = [sixteen](int byte) {
        return _mm_cmpeq_epi8(sixteen, _mm_set1_epi8(static_cast<char>(byte)));
      };
      const __m128i ends = _mm_or_si128(equal('\n'), equal('\r'));
      const __m128i others = _mm_or_si128(equal(delimiter_), equal(kCsvQuote));
      const auto bits = static_cast<uint16_t>(_mm_movemask_epi8(_mm_or_si128(ends, others)));
      mask |= static_cast<uint64_t>(bits) << (16 * i);
    }
    return mask;
  }
#else
  uint64_t find_marks(const uint8_t* bytes) const {
    uint64_t mask = 0;
    for (int i = 0; i < 8; ++i) {
      uint64_t word;
      std::memcpy(&word, bytes + 8 * i, 8);
      const uint64_t others = differ(word, delimiter_) & differ(word, kCsvQuote) &
                              differ(word, '\n') & differ(word, '\r');
      const uint64_t marks = (~others >> 7) & kEight;              // a bit in each byte
      mask |= ((marks * 0x0102040810204080ull) >> 56) << (8 * i);  // side by side
    }
    return mask;
  }

  // Sets the high bit of each byte that differs.
  static uint64_t differ(uint64_t word, uint8_t byte) {
    constexpr uint64_t kLow = 0x7f * kEight;
    const uint64_t difference = word ^ (byte * kEight);
    return ((difference & kLow) + kLow) | difference;
  }

  static constexpr uint64_t kEight = 0x0101010101010101ull;
#endif

  ByteSpan text_;
  uint8_t delimiter_;
  size_t block_ = 0;
  uint64_t mask_ = 0;
};

}  // namespace datum
