// Numbers in decimal text, read only if the number preserves the text.
#pragma once

#include <cstdint>
#include <string_view>

#include "wire.h"

namespace datum {

enum class NumberKind : uint8_t { kNone, kInteger, kFloat };

struct Number {
  NumberKind kind = NumberKind::kNone;
  int64_t integer = 0;  // kInteger
  double real = 0;      // kFloat, and kInteger rounded
};

// An integer is `-?(0|[1-9][0-9]*)` within 64 bits; "-0" is a float, for its sign. A float has a
// point, an exponent or both, or is one of the usual words for NaN and infinity. Leading zeros, a
// leading plus and values beyond the range of a double are not numbers: they stay text. `point` is
// the decimal separator.
Number read_number(ByteSpan text, uint8_t point = '.');

// The same if a number was requested: blanks around it, leading zeros and a plus are allowed.
Number read_wanted_number(ByteSpan text, uint8_t point = '.');

inline std::string_view as_view(ByteSpan text) {
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

// Returns the text without blanks around it.
ByteSpan trim_blanks(ByteSpan text);

}  // namespace datum
