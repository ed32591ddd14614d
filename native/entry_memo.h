// What an entry of the record before looked like, so that the same form is known at a glance.
//
// A map entry in the common form is a head, and one packed chunk (or one byte string) as body:
//
//   0a <entry> 0a <key> key... 12 <value> TT <list> 0a <body> body...
//
// with five lengths in it. From one record to the next the head is the same, but for those lengths
// that count the body. Comparing it as a few words replaces six bounds-checked reads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "message.h"

namespace datum {

class EntryMemo {
 public:
  // Remembers the entry whose tag is at `at`. `body` is its chunk, which ends the entry.
  void learn(const uint8_t* at, ByteSpan body, size_t key_size, Kind kind) {
    const auto head_size = static_cast<size_t>(body.data() - at);
    words_ = 0;
    if (head_size > kMaxHeadBytes) return;
    head_size_ = static_cast<uint32_t>(head_size);
    kind_ = kind;
    std::array<uint8_t, kMaxHeadBytes> mask{};
    std::fill_n(mask.begin(), head_size, uint8_t{0xff});
    has_short_lengths_ = head_size == key_size + kShortHeadBytes;
    body_size_ = body.size();
    if (has_short_lengths_) {
      for (const size_t at_length : {size_t{1}, key_size + 5, key_size + 7, key_size + 9}) {
        mask[at_length] = 0;
      }
    }
    std::array<uint8_t, kMaxHeadBytes> head{};
    std::memcpy(head.data(), at, head_size);
    std::memcpy(mask_.data(), mask.data(), kMaxHeadBytes);
    std::memcpy(head_.data(), head.data(), kMaxHeadBytes);
    for (size_t w = 0; w < kMaxWords; ++w) head_[w] &= mask_[w];
    words_ = static_cast<uint32_t>((head_size + 7) / 8);
  }

  void forget() { words_ = 0; }

  // Whether the bytes at `at` are an entry of the remembered form that ends before `end`; if so
  // `body` is its chunk. Up to `readable` the memory can be read, whatever it holds.
  bool match(const uint8_t* at, const uint8_t* end, const uint8_t* readable, ByteSpan& body) const {
    if (words_ == 0 || static_cast<size_t>(readable - at) < 8 * words_) return false;
    uint64_t difference = 0;
    for (uint32_t w = 0; w < words_; ++w) {
      uint64_t word;
      std::memcpy(&word, at + 8 * w, 8);
      difference |= (word & mask_[w]) ^ head_[w];
    }
    if (difference != 0) return false;
    size_t size = body_size_;
    if (has_short_lengths_) {
      const uint8_t* last = at + head_size_ - 1;  // the length of the body
      size = *last;
      // Each length counts what follows it; the entry's own is one byte only below 128.
      if (last[-2] != size + 2 || last[-4] != size + 4 || at[1] != size + head_size_ - 2 ||
          at[1] >= 0x80) {
        return false;
      }
    }
    const uint8_t* start = at + head_size_;
    if (start > end || static_cast<size_t>(end - start) < size) return false;
    body = {start, size};
    return true;
  }

  Kind kind() const { return kind_; }

 private:
  static constexpr size_t kMaxWords = 5;  // keys of up to 30 bytes
  static constexpr size_t kMaxHeadBytes = 8 * kMaxWords;
  static constexpr size_t kShortHeadBytes = 10;  // beside the key, when each length is one byte

  uint32_t words_ = 0;  // of the head; 0 when nothing is remembered
  uint32_t head_size_ = 0;
  bool has_short_lengths_ = false;  // and so may differ from record to record
  Kind kind_ = Kind::kUnset;
  size_t body_size_ = 0;
  std::array<uint64_t, kMaxWords> head_{};
  std::array<uint64_t, kMaxWords> mask_{};
};

}  // namespace datum
