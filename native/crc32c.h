// CRC-32C (Castagnoli), the checksum of every TFRecord length and payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace datum {

// `copy` is the destination of the bytes, or null.
using Crc32cFunction = uint32_t (*)(uint32_t crc, const uint8_t* data, size_t size, uint8_t* copy);

struct Crc32cImplementation {
  std::string_view name;
  Crc32cFunction extend;
};

// The implementations for this processor, the fastest first; the portable "table" is always last.
std::span<const Crc32cImplementation> crc32c_implementations();

// Extends `crc` by `data`.
uint32_t crc32c_extend(uint32_t crc, const uint8_t* data, size_t size);

// Copies bytes that others may be changing; the CRC is that of the copy.
uint32_t crc32c_copy(const uint8_t* data, size_t size, uint8_t* copy);

inline uint32_t crc32c(const uint8_t* data, size_t size) { return crc32c_extend(0, data, size); }

// TFRecord stores CRCs rotated and offset, because the CRC of data with CRCs in it is weak.
inline uint32_t mask_crc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace datum
