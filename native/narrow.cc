#include "narrow.h"

#include <bit>

namespace datum {
namespace {

constexpr size_t kAtOnce = 256;  // numbers checked without branches

// Returns whether any finite float is of 2^24 or more.
bool has_far(const float* floats, size_t count) {
  constexpr auto kFrom = std::bit_cast<int32_t>(static_cast<float>(kWideFrom));
  int32_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    const int32_t magnitude = std::bit_cast<int32_t>(floats[i]) & 0x7fffffff;
    found |= magnitude >= kFrom ? 1 : 0;
  }
  return found != 0;
}

// Returns whether any number changed; NaN does not count.
bool has_changed(std::span<const double> numbers, const float* floats) {
  uint64_t bits = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto back = static_cast<double>(floats[i]);
    bits |= std::bit_cast<uint64_t>(back) ^ std::bit_cast<uint64_t>(numbers[i]);
  }
  for (size_t i = 0; bits != 0 && i < numbers.size(); ++i) {
    const auto back = static_cast<double>(floats[i]);
    if (back < numbers[i] || back > numbers[i]) return true;
  }
  return false;
}

}  // namespace

Narrowing narrow(std::span<const double> from, float* to) {
  Narrowing found;
  for (size_t first = 0; first < from.size(); first += kAtOnce) {
    const auto some = from.subspan(first, std::min(kAtOnce, from.size() - first));
    float* floats = to + first;
    for (size_t i = 0; i < some.size(); ++i) floats[i] = static_cast<float>(some[i]);
    found.is_rounded = found.is_rounded || has_changed(some, floats);
    if (found.first_wide == kNoneWide && has_far(floats, some.size())) {
      const size_t at = find_wide(some);
      if (at != kNoneWide) found.first_wide = first + at;
    }
  }
  return found;
}

}  // namespace datum
