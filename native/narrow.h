// Doubles as float32, and numbers that float32 changes too much.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

namespace datum {

// From here on float32 skips integers: a change is more than the noise of a measurement.
constexpr double kWideFrom = 0x1p24;
constexpr size_t kNoneWide = std::numeric_limits<size_t>::max();

// Not 0 if a number may be of 2^24 or more, which float32 may not represent; compilers vectorize
// these joined with "or".
template <typename T>
uint64_t far_bits(T number) {
  constexpr uint64_t kFrom = uint64_t{1} << 24;
  if constexpr (std::is_floating_point_v<T>) {
    return std::fabs(number) >= kWideFrom;
  } else if constexpr (sizeof(T) < 4) {
    return 0;
  } else if constexpr (std::is_signed_v<T>) {
    return (static_cast<uint64_t>(static_cast<int64_t>(number)) + kFrom) >> 25;
  } else {
    return static_cast<uint64_t>(number) >> 24;
  }
}

// Returns whether float32 cannot represent a number well enough: it overflows, or is of 2^24 or
// more and changes.
template <typename T>
bool is_wide(T number) {
  if (far_bits(number) == 0) return false;
  const auto narrow = static_cast<float>(number);
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(narrow) != number;
  } else {
    return narrow >= static_cast<float>(std::numeric_limits<T>::max()) ||
           static_cast<T>(narrow) != number;
  }
}

// Returns the position of the first such number, or kNoneWide.
template <typename T>
size_t find_wide(std::span<const T> numbers) {
  constexpr size_t kAtOnce = 256;  // checked without branches
  for (size_t first = 0; first < numbers.size(); first += kAtOnce) {
    const auto some = numbers.subspan(first, std::min(kAtOnce, numbers.size() - first));
    uint64_t far = 0;
    for (const T number : some) far |= far_bits(number);
    for (size_t i = 0; far != 0 && i < some.size(); ++i) {
      if (is_wide(some[i])) return first + i;
    }
  }
  return kNoneWide;
}

struct Narrowing {
  bool is_rounded = false;  // whether a number changed
  size_t first_wide = kNoneWide;
};

// Converts every number of `from` to float32, from `to` on.
Narrowing narrow(std::span<const double> from, float* to);

}  // namespace datum
