// The types of a feature's elements in memory, before they are written.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace datum {

enum class Element : uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kComplex,  // of any width
  kTime,     // int64; the lowest value means no time
  kBytes,
  kText,
  kFile,  // bytes known to be a file
};

constexpr bool is_string(Element element) {
  return element == Element::kBytes || element == Element::kText;
}

// A 16-bit number without a C++ type.
struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};

// Exact for every bit pattern, including the payloads of NaNs. Without branches, so that compilers
// vectorize it: a multiplication that never rounds corrects the exponent.
inline float to_float(Half half) {
  const uint32_t magnitude = static_cast<uint32_t>(half.bits & 0x7fff) << 13;
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const uint32_t infinite = magnitude >= 0x0f800000 ? 0x7f800000 : 0;
  const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000) << 16;
  return std::bit_cast<float>(sign | finite | infinite);
}

inline float to_float(Bfloat number) {
  return std::bit_cast<float>(static_cast<uint32_t>(number.bits) << 16);
}

// Calls `use(T{})` with the type of an element that is a real number.
template <typename Use>
auto with_number(Element element, Use&& use) {
  switch (element) {
    case Element::kBool:
      return use(bool{});
    case Element::kInt8:
      return use(int8_t{});
    case Element::kInt16:
      return use(int16_t{});
    case Element::kInt32:
      return use(int32_t{});
    case Element::kUint8:
      return use(uint8_t{});
    case Element::kUint16:
      return use(uint16_t{});
    case Element::kUint32:
      return use(uint32_t{});
    case Element::kUint64:
      return use(uint64_t{});
    case Element::kFloat16:
      return use(Half{});
    case Element::kBfloat16:
      return use(Bfloat{});
    case Element::kFloat32:
      return use(float{});
    case Element::kFloat64:
      return use(double{});
    default:
      return use(int64_t{});
  }
}

}  // namespace datum
