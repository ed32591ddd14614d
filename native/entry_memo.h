// The form of an entry of the previous record, to recognise the same form quickly.
//
// A map entry in the common form is a head, and one packed chunk (or one byte string) as body:
//
//   0a <entry> 0a <key> key... 12 <value> TT <list> 0a <body> body...
//
// with five lengths in it. From one record to the next the head is the same, except for the four
// lengths that include the body: each differs from its size by a constant. Comparing the head as a
// few words replaces six bounds-checked reads.
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
  void learn(const uint8_t* at, ByteSpan body, size_t key_size) {
    const auto head_size = static_cast<size_t>(body.data() - at);
    words_ = 0;
    if (head_size > 8 * kMaxWords) return;
    std::array<uint8_t, 8 * kMaxWords> head{};
    std::array<uint8_t, 8 * kMaxWords> counts{};  // 1 for a byte that includes the body
    std::memcpy(head.data(), at, head_size);
    fixed_size_ = body.size();
    max_size_ = 0;
    if (head_size == key_size + kShortHeadBytes) {  // every length is one byte
      fixed_size_ = 0;
      max_size_ = 127 - (head_size - 2);  // so that the entry's own length stays one byte
      for (const size_t length_at : {size_t{1}, head_size - 5, head_size - 3, head_size - 1}) {
        head[length_at] = static_cast<uint8_t>(head[length_at] - body.size());
        counts[length_at] = 1;
      }
    }
    head_size_ = static_cast<uint32_t>(head_size);
    words_ = static_cast<uint32_t>((head_size + 7) / 8);
    for (size_t w = 0; w < kMaxWords; ++w) {
      // The last word ends with the head, so that none extends beyond it.
      offsets_[w] = static_cast<uint8_t>(std::min(8 * w, head_size - 8));
      std::memcpy(&head_[w], head.data() + offsets_[w], 8);
      std::memcpy(&counts_[w], counts.data() + offsets_[w], 8);
    }
  }

  void forget() { words_ = 0; }

  // Returns whether the bytes from `at` to `end` start with an entry of the remembered form; if so,
  // sets `body` to its chunk.
  bool match(const uint8_t* at, const uint8_t* end, ByteSpan& body) const {
    const auto left = static_cast<size_t>(end - at);
    if (words_ == 0 || left < head_size_) return false;
    uint64_t size = at[head_size_ - 1];
    if (size > max_size_) size = 0;  // lengths of several bytes are compared unchanged
    uint64_t difference = differs(at, 0, size) | differs(at, 1, size) | differs(at, 2, size);
    for (uint32_t w = 3; w < words_; ++w) difference |= differs(at, w, size);
    size += fixed_size_;
    if (difference != 0 || left - head_size_ < size) return false;
    body = {at + head_size_, static_cast<size_t>(size)};
    return true;
  }

 private:
  static constexpr size_t kMaxWords = 5;         // keys of up to 30 bytes
  static constexpr size_t kShortHeadBytes = 10;  // besides the key, when each length is one byte

  uint64_t differs(const uint8_t* at, size_t w, uint64_t size) const {
    uint64_t word;
    std::memcpy(&word, at + offsets_[w], 8);
    return (word - size * counts_[w]) ^ head_[w];
  }

  uint32_t words_ = 0;  // of the head; 0 when nothing is remembered
  uint32_t head_size_ = 0;
  uint64_t fixed_size_ = 0;  // of the body, if its lengths are of several bytes
  uint64_t max_size_ = 0;    // of the body, if they are of one
  std::array<uint8_t, kMaxWords> offsets_{};
  std::array<uint64_t, kMaxWords> head_{};
  std::array<uint64_t, kMaxWords> counts_{};
};

}  // namespace datum
