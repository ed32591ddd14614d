// A permutation of 0..records-1 for each 64-bit key, computed point by point without a table.
//
// Positions are written as pairs and passed through a Feistel network whose halves are numbers
// below `a` and `b` instead of bit strings. All arithmetic is on unsigned 64-bit integers.
//
//   mix(z):   z ^= z >> 30;  z *= 0xbf58476d1ce4e5b9 (mod 2^64)
//             z ^= z >> 27;  z *= 0x94d049bb133111eb (mod 2^64);  z ^= z >> 31
//   k[i]    = mix(mix(key) + (i + 1) * 0x9e3779b97f4a7c15 (mod 2^64)), for i = 0, 1, 2, ...
//   a       = the least integer with a * a >= records;  b = records / a, rounded up
//   F(i, v, m) = ((mix(v xor k[i]) >> 32) * m) >> 32, a number below m
//
//   x is split: left = x / b rounded down, right = x % b, so that left < a and right < b.
//   For i = 0, 2, 4, ..., rounds - 2:
//     left  = (left  + F(i,     right, a)) mod a
//     right = (right + F(i + 1, left,  b)) mod b
//   x becomes left * b + right. If that is not below `records`, the steps are repeated.
//   `rounds` is 32 if records < 65536, otherwise 8.
//
// a * b is at most a - 1 more than `records`, so a second pass is rare when there are many. Adding
// within each half can be undone in the opposite order, which computes the inverse. mix is the
// finalizer of SplitMix64, and k its output for the seed mix(key). With halves of 2 or 3 values 8
// rounds would leave some pairs of records a sixth more likely than others; 32 make that 4e-5.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace datum {

class Permutation {
 public:
  // `records` from 1 to 2^63 - 1.
  Permutation(uint64_t records, uint64_t key);

  // Computes the record at each position. All numbers must be in range; the result may overwrite
  // the input.
  void records_at(std::span<const int64_t> positions, int64_t* records) const;

  // Computes the position of each record.
  void positions_of(std::span<const int64_t> records, int64_t* positions) const;

 private:
  static constexpr size_t kMaxRounds = 32;

  template <size_t kCount>
  void forward(std::array<uint64_t, kCount>& x) const;
  template <size_t kCount>
  void backward(std::array<uint64_t, kCount>& x) const;
  template <typename Pass>
  void put_through(std::span<const int64_t> in, int64_t* out, Pass pass) const;
  uint64_t mixed(size_t round, uint64_t value, uint64_t modulus) const;

  uint64_t records_;
  uint64_t left_count_;   // a
  uint64_t right_count_;  // b
  size_t rounds_;
  std::array<uint64_t, kMaxRounds> keys_;
};

}  // namespace datum
