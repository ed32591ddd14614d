#include "crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#define DATUM_CRC_X86 1
#include <nmmintrin.h>
#elif defined(__aarch64__)
#define DATUM_CRC_ARM 1
#include <arm_acle.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

#if defined(DATUM_CRC_X86)
#define DATUM_CRC_TARGET __attribute__((target("sse4.2")))
#elif defined(DATUM_CRC_ARM) && defined(__clang__)
#define DATUM_CRC_TARGET __attribute__((target("crc")))
#elif defined(DATUM_CRC_ARM)
#define DATUM_CRC_TARGET __attribute__((target("+crc")))
#endif

namespace datum {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u;  // Castagnoli, bit-reversed

// kTable[k][b]: the CRC of byte b followed by k zero bytes ("slicing by eight").
constexpr auto kTable = [] {
  std::array<std::array<uint32_t, 256>, 8> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) ? (crc >> 1) ^ kPolynomial : crc >> 1;
    table[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t previous = table[k - 1][byte];
      table[k][byte] = (previous >> 8) ^ table[0][previous & 0xff];
    }
  }
  return table;
}();

uint64_t load64(const uint8_t* data) {
  uint64_t word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

uint32_t extend_table(uint32_t crc, const uint8_t* data, size_t size, uint8_t* copy) {
  if (copy != nullptr && size > 0) {
    std::memcpy(copy, data, size);
    data = copy;
  }
  crc = ~crc;
  for (; size >= 8; data += 8, size -= 8) {
    const uint64_t word = load64(data) ^ crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTable[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; size > 0; ++data, --size) crc = (crc >> 8) ^ kTable[0][(crc ^ *data) & 0xff];
  return ~crc;
}

#if defined(DATUM_CRC_X86) || defined(DATUM_CRC_ARM)

// Advances a CRC over a fixed number of zero bytes: four table look-ups, made at compile time.
class ZeroShift {
 public:
  constexpr explicit ZeroShift(size_t zero_bytes) : table_{} {
    // Each bit's image under `zero_bytes` zero bytes, by squaring the one-byte operator.
    std::array<uint32_t, 32> power{};  // the operator for 2^i zero bytes, applied to each bit
    for (size_t bit = 0; bit < 32; ++bit) {
      uint32_t crc = uint32_t{1} << bit;
      for (int step = 0; step < 8; ++step) crc = (crc & 1) ? (crc >> 1) ^ kPolynomial : crc >> 1;
      power[bit] = crc;
    }
    std::array<uint32_t, 32> result{};
    for (size_t bit = 0; bit < 32; ++bit) result[bit] = uint32_t{1} << bit;
    for (; zero_bytes > 0; zero_bytes >>= 1) {
      if (zero_bytes & 1) result = compose(power, result);
      power = compose(power, power);
    }
    for (size_t byte = 0; byte < 4; ++byte) {
      for (uint32_t value = 0; value < 256; ++value) {
        table_[byte][value] = apply(result, value << (8 * byte));
      }
    }
  }

  uint32_t operator()(uint32_t crc) const {
    return table_[0][crc & 0xff] ^ table_[1][(crc >> 8) & 0xff] ^ table_[2][(crc >> 16) & 0xff] ^
           table_[3][crc >> 24];
  }

 private:
  static constexpr uint32_t apply(const std::array<uint32_t, 32>& matrix, uint32_t vector) {
    uint32_t sum = 0;
    for (size_t bit = 0; bit < 32; ++bit) {
      if ((vector >> bit) & 1) sum ^= matrix[bit];
    }
    return sum;
  }
  static constexpr std::array<uint32_t, 32> compose(const std::array<uint32_t, 32>& outer,
                                                    const std::array<uint32_t, 32>& inner) {
    std::array<uint32_t, 32> result{};
    for (size_t bit = 0; bit < 32; ++bit) result[bit] = apply(outer, inner[bit]);
    return result;
  }

  std::array<std::array<uint32_t, 256>, 4> table_;
};

#if defined(DATUM_CRC_X86)
DATUM_CRC_TARGET inline uint32_t step8(uint32_t crc, uint64_t word) {
  return static_cast<uint32_t>(_mm_crc32_u64(crc, word));
}
DATUM_CRC_TARGET inline uint32_t step1(uint32_t crc, uint8_t byte) {
  return _mm_crc32_u8(crc, byte);
}
#else
DATUM_CRC_TARGET inline uint32_t step8(uint32_t crc, uint64_t word) { return __crc32cd(crc, word); }
DATUM_CRC_TARGET inline uint32_t step1(uint32_t crc, uint8_t byte) { return __crc32cb(crc, byte); }
#endif

// Reads a word or a byte exactly once: the compiler must not read it again for the copy.
template <typename Word, bool kCopies>
inline Word take(const uint8_t* data, [[maybe_unused]] uint8_t* copy, size_t at) {
  Word word;
  std::memcpy(&word, data + at, sizeof word);
  if constexpr (kCopies) {
    asm("" : "+r"(word));
    std::memcpy(copy + at, &word, sizeof word);
  }
  return word;
}

// The instruction has a latency of three cycles and a throughput of one: three independent
// streams of kStride bytes keep it busy, and ZeroShift joins their results.
template <size_t kStride, bool kCopies>
DATUM_CRC_TARGET inline void extend_three_streams(uint32_t& crc, const uint8_t*& data, size_t& size,
                                                  uint8_t*& copy) {
  static constexpr ZeroShift kShift{kStride};
  constexpr auto take8 = take<uint64_t, kCopies>;
  while (size >= 3 * kStride) {
    uint32_t second = 0;
    uint32_t third = 0;
    for (size_t at = 0; at < kStride; at += 8) {
      crc = step8(crc, take8(data, copy, at));
      second = step8(second, take8(data, copy, at + kStride));
      third = step8(third, take8(data, copy, at + 2 * kStride));
    }
    crc = kShift(kShift(crc) ^ second) ^ third;
    data += 3 * kStride;
    if constexpr (kCopies) copy += 3 * kStride;
    size -= 3 * kStride;
  }
}

template <bool kCopies>
DATUM_CRC_TARGET uint32_t extend_streams(uint32_t crc, const uint8_t* data, size_t size,
                                         uint8_t* copy) {
  crc = ~crc;
  // Streams further apart need fewer joins, but hardware prefetching works less well: from memory,
  // strides of 512 or 4096 bytes take two to three times as long.
  extend_three_streams<256, kCopies>(crc, data, size, copy);
  extend_three_streams<64, kCopies>(crc, data, size, copy);
  size_t at = 0;
  for (; at + 8 <= size; at += 8) crc = step8(crc, take<uint64_t, kCopies>(data, copy, at));
  for (; at < size; ++at) crc = step1(crc, take<uint8_t, kCopies>(data, copy, at));
  return ~crc;
}

uint32_t extend_hardware(uint32_t crc, const uint8_t* data, size_t size, uint8_t* copy) {
  return copy == nullptr ? extend_streams<false>(crc, data, size, copy)
                         : extend_streams<true>(crc, data, size, copy);
}

bool has_hardware() {
#if defined(DATUM_CRC_X86)
  return __builtin_cpu_supports("sse4.2");
#elif defined(__linux__)
  constexpr unsigned long kHwcapCrc32 = 1UL << 7;  // HWCAP_CRC32 of <asm/hwcap.h>
  return (getauxval(AT_HWCAP) & kHwcapCrc32) != 0;
#else
  return true;  // every ARM machine that runs macOS has the instructions
#endif
}

#if defined(DATUM_CRC_X86)
constexpr std::string_view kHardwareName = "sse4.2";
#else
constexpr std::string_view kHardwareName = "armv8";
#endif
#endif  // DATUM_CRC_X86 || DATUM_CRC_ARM

constexpr Crc32cImplementation kAll[] = {
#if defined(DATUM_CRC_X86) || defined(DATUM_CRC_ARM)
    {kHardwareName, extend_hardware},
#endif
    {"table", extend_table},
};

}  // namespace

std::span<const Crc32cImplementation> crc32c_implementations() {
  const std::span<const Crc32cImplementation> all{kAll};
#if defined(DATUM_CRC_X86) || defined(DATUM_CRC_ARM)
  static const bool hardware = has_hardware();
  return hardware ? all : all.subspan(1);
#else
  return all;
#endif
}

namespace {

Crc32cFunction fastest() {
  static const Crc32cFunction function = crc32c_implementations().front().extend;
  return function;
}

}  // namespace

uint32_t crc32c_extend(uint32_t crc, const uint8_t* data, size_t size) {
  return fastest()(crc, data, size, nullptr);
}

uint32_t crc32c_copy(const uint8_t* data, size_t size, uint8_t* copy) {
  return fastest()(0, data, size, copy);
}

}  // namespace datum
