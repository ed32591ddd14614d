#include "permutation.h"

#include <cmath>

namespace datum {
namespace {

constexpr uint64_t kFewRecords = 65536;
constexpr size_t kLanes = 4;  // positions processed together: each is one long dependency chain

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Returns the least integer whose square is not below `number`, which is less than 2^63.
uint64_t ceil_sqrt(uint64_t number) {
  // A double is only near; the steps make it exact.
  auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(number)));
  while (root * root < number) ++root;
  while (root > 0 && (root - 1) * (root - 1) >= number) --root;
  return root;
}

uint64_t add(uint64_t a, uint64_t b, uint64_t modulus) {
  const uint64_t sum = a + b;
  return sum < modulus ? sum : sum - modulus;
}

}  // namespace

Permutation::Permutation(uint64_t records, uint64_t key)
    : records_(records),
      left_count_(ceil_sqrt(records)),
      right_count_((records - 1) / left_count_ + 1),
      rounds_(records < kFewRecords ? kMaxRounds : 8) {
  uint64_t state = mix(key);
  for (uint64_t& round_key : keys_) round_key = mix(state += 0x9e3779b97f4a7c15u);
}

inline uint64_t Permutation::mixed(size_t round, uint64_t value, uint64_t modulus) const {
  return ((mix(value ^ keys_[round]) >> 32) * modulus) >> 32;
}

template <size_t kCount>
inline void Permutation::forward(std::array<uint64_t, kCount>& x) const {
  const uint64_t a = left_count_;
  const uint64_t b = right_count_;
  std::array<uint64_t, kCount> left;
  std::array<uint64_t, kCount> right;
  for (size_t lane = 0; lane < kCount; ++lane) {
    left[lane] = x[lane] / b;
    right[lane] = x[lane] - left[lane] * b;
  }
  for (size_t i = 0; i < rounds_; i += 2) {
    for (size_t lane = 0; lane < kCount; ++lane) {
      left[lane] = add(left[lane], mixed(i, right[lane], a), a);
    }
    for (size_t lane = 0; lane < kCount; ++lane) {
      right[lane] = add(right[lane], mixed(i + 1, left[lane], b), b);
    }
  }
  for (size_t lane = 0; lane < kCount; ++lane) x[lane] = left[lane] * b + right[lane];
}

template <size_t kCount>
inline void Permutation::backward(std::array<uint64_t, kCount>& x) const {
  const uint64_t a = left_count_;
  const uint64_t b = right_count_;
  for (uint64_t& place : x) {
    uint64_t left = place / b;
    uint64_t right = place - left * b;
    for (size_t i = rounds_; i > 0; i -= 2) {
      right = add(right, b - mixed(i - 1, left, b), b);
      left = add(left, a - mixed(i - 2, right, a), a);
    }
    place = left * b + right;
  }
}

// Each position passes at least once, and again until it is one of the records.
template <typename Pass>
void Permutation::put_through(std::span<const int64_t> in, int64_t* out, Pass pass) const {
  const auto finish = [&](uint64_t x) {
    std::array<uint64_t, 1> one{x};
    while (one[0] >= records_) pass(one);
    return static_cast<int64_t>(one[0]);
  };
  size_t i = 0;
  for (; i + kLanes <= in.size(); i += kLanes) {
    std::array<uint64_t, kLanes> x;
    for (size_t lane = 0; lane < kLanes; ++lane) x[lane] = static_cast<uint64_t>(in[i + lane]);
    pass(x);
    for (size_t lane = 0; lane < kLanes; ++lane) out[i + lane] = finish(x[lane]);
  }
  for (; i < in.size(); ++i) {
    std::array<uint64_t, 1> one{static_cast<uint64_t>(in[i])};
    pass(one);
    out[i] = finish(one[0]);
  }
}

void Permutation::records_at(std::span<const int64_t> positions, int64_t* records) const {
  put_through(positions, records, [this](auto& x) { forward(x); });
}

void Permutation::positions_of(std::span<const int64_t> records, int64_t* positions) const {
  put_through(records, positions, [this](auto& x) { backward(x); });
}

}  // namespace datum
