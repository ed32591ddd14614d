#include "summary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace datum {
namespace {

// Returns the start of a row among the cells, which is the end of the one before.
size_t start_of(const ColumnSource& source, size_t row) {
  auto at = static_cast<int64_t>(row);
  if (source.layout != Layout::kFixed) at = source.splits[at];
  if (source.layout == Layout::kNestedSteps) at = source.inner_splits[at];
  return static_cast<size_t>(at) * source.unit;
}

// Calls `use(first, end)` for each run of cells of rows that are present: mostly all of them.
template <typename Use>
void for_each_run(const ColumnSource& source, size_t rows, Use&& use) {
  size_t row = 0;
  while (row < rows) {
    if (!source.is_present(row)) {
      ++row;
      continue;
    }
    const size_t first = row;
    while (row < rows && source.is_present(row)) ++row;
    use(start_of(source, first), start_of(source, row));
  }
}

// Adds a few thousand integers: narrow ones are summed in few bits, vectorized.
template <typename T>
void add_integers(const T* values, size_t count, NumberRange& range) {
  using Sum = std::conditional_t<sizeof(T) < 4, int32_t, int64_t>;
  constexpr size_t kChunk = 4096;
  for (size_t first = 0; first < count; first += kChunk) {
    const T* chunk = values + first;
    const size_t size = std::min(kChunk, count - first);
    T lowest = chunk[0];
    T highest = chunk[0];
    for (size_t i = 0; i < size; ++i) {
      lowest = chunk[i] < lowest ? chunk[i] : lowest;
      highest = chunk[i] > highest ? chunk[i] : highest;
    }
    Sum low = 0;
    Sum high = 0;
    for (size_t i = 0; i < size; ++i) {
      if constexpr (sizeof(T) < 8) {
        low += static_cast<Sum>(chunk[i]);
      } else {
        low += static_cast<Sum>(static_cast<uint64_t>(chunk[i]) & 0xffffffff);
        high += static_cast<Sum>(chunk[i] >> 32);
      }
    }
    range.total_low += low;
    range.total_high += high;
    if constexpr (std::is_same_v<T, uint64_t>) {
      range.unsigned_lowest = std::min(range.unsigned_lowest, lowest);
      range.unsigned_highest = std::max(range.unsigned_highest, highest);
    } else {
      range.lowest = std::min(range.lowest, static_cast<int64_t>(lowest));
      range.highest = std::max(range.highest, static_cast<int64_t>(highest));
    }
  }
  range.count += count;
}

void add_times(const int64_t* values, size_t count, NumberRange& range) {
  for (size_t i = 0; i < count; ++i) {
    if (values[i] == INT64_MIN) {
      ++range.not_numbers;
    } else {
      add_integers(values + i, 1, range);
    }
  }
}

template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// Maps floats to integers of the same order; the same function maps back.
template <typename T>
T to_ordered(T bits) {
  return bits ^ ((bits >> (8 * sizeof(T) - 1)) & std::numeric_limits<T>::max());
}

// Sums in lanes that are added in the same order on every machine.
template <typename T>
double sum_floats(const T* values, size_t count) {
  constexpr size_t kLanes = 8;
  double totals[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      totals[lane] += static_cast<double>(values[i + lane]);
    }
  }
  for (size_t lane = 0; i < count; ++i, ++lane) totals[lane] += static_cast<double>(values[i]);
  double total = 0;
  for (const double lane : totals) total += lane;
  return total;
}

// Adds floats, if all are finite: as integers, which compilers compare vectorized.
template <typename T>
bool add_finite(const T* values, size_t count, NumberRange& range) {
  using Bits = BitsOf<T>;
  constexpr Bits kInfinite = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits lowest = std::numeric_limits<Bits>::max();
  Bits highest = std::numeric_limits<Bits>::min();
  for (size_t i = 0; i < count; ++i) {
    const Bits ordered = to_ordered(std::bit_cast<Bits>(values[i]));
    lowest = ordered < lowest ? ordered : lowest;
    highest = ordered > highest ? ordered : highest;
  }
  if (highest >= kInfinite ||
      lowest <= to_ordered(std::bit_cast<Bits>(-std::numeric_limits<T>::infinity()))) {
    return false;
  }
  const auto low = static_cast<double>(std::bit_cast<T>(to_ordered(lowest)));
  const auto high = static_cast<double>(std::bit_cast<T>(to_ordered(highest)));
  range.float_lowest = range.count == 0 ? low : std::min(range.float_lowest, low);
  range.float_highest = range.count == 0 ? high : std::max(range.float_highest, high);
  range.float_total += sum_floats(values, count);
  range.count += count;
  return true;
}

template <typename T>
void add_floats(const T* values, size_t count, NumberRange& range) {
  constexpr size_t kBlock = 512;
  for (size_t first = 0; first < count; first += kBlock) {
    const T* block = values + first;
    const size_t size = std::min(kBlock, count - first);
    if (add_finite(block, size, range)) continue;
    T finite[kBlock];
    size_t kept = 0;
    for (size_t i = 0; i < size; ++i) {
      if (std::isfinite(block[i])) finite[kept++] = block[i];
      range.not_numbers += std::isnan(block[i]);
      range.infinite += std::isinf(block[i]);
    }
    if (kept > 0) add_finite(finite, kept, range);
  }
}

template <typename T>
void add_halves(const T* values, size_t count, NumberRange& range) {
  float wide[256];
  for (size_t first = 0; first < count; first += 256) {
    const size_t size = std::min<size_t>(256, count - first);
    for (size_t i = 0; i < size; ++i) wide[i] = to_float(values[first + i]);
    add_floats(wide, size, range);
  }
}

template <typename T>
void add_numbers(const T* values, size_t count, NumberRange& range) {
  if constexpr (std::is_floating_point_v<T>) {
    add_floats(values, count, range);
  } else if constexpr (std::is_same_v<T, bool>) {
    add_integers(reinterpret_cast<const uint8_t*>(values), count, range);
  } else if constexpr (std::is_integral_v<T>) {
    add_integers(values, count, range);
  } else {
    add_halves(values, count, range);
  }
}

// Counts keys in the order of their first occurrence; stops beyond kMaxDistinct.
template <typename Key, typename Hash, typename Equal>
class Counter {
 public:
  explicit Counter(size_t values)
      : slots_(std::bit_ceil(2 * std::min(values, kMaxDistinct) + 2), kFree) {}

  bool add(const Key& key) {
    const size_t mask = slots_.size() - 1;
    size_t at = Hash()(key) & mask;
    while (slots_[at] != kFree) {
      auto& [known, count] = counts[slots_[at]];
      if (Equal()(known, key)) {
        ++count;
        return true;
      }
      at = (at + 1) & mask;
    }
    if (counts.size() == kMaxDistinct) return false;
    slots_[at] = static_cast<uint32_t>(counts.size());
    counts.emplace_back(key, 1);
    return true;
  }

  std::vector<std::pair<Key, uint64_t>> counts;

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  std::vector<uint32_t> slots_;
};

size_t mix(uint64_t value) {
  value *= 0x9e3779b97f4a7c15ull;
  return static_cast<size_t>(value ^ (value >> 29));
}

struct IntegerHash {
  size_t operator()(int64_t key) const { return mix(static_cast<uint64_t>(key)); }
};

struct StringHash {
  size_t operator()(ByteSpan key) const {
    uint64_t hash = key.size();
    size_t at = 0;
    for (; at + 8 <= key.size(); at += 8) {
      uint64_t word;
      std::memcpy(&word, key.data() + at, 8);
      hash = mix(hash ^ word);
    }
    for (; at < key.size(); ++at) hash = mix(hash ^ key[at]);
    return hash;
  }
};

struct StringEqual {
  bool operator()(ByteSpan a, ByteSpan b) const {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
  }
};

template <typename T>
void count_integers(const ColumnSource& source, size_t rows, Summary& summary) {
  const auto* values = reinterpret_cast<const T*>(source.values);
  Counter<int64_t, IntegerHash, std::equal_to<>> counter(rows);
  bool is_kept = true;
  for_each_run(source, rows, [&](size_t first, size_t end) {
    for (size_t i = first; i < end && is_kept; ++i) {
      is_kept = counter.add(static_cast<int64_t>(values[i]));
    }
  });
  summary.has_counts = is_kept;
  if (is_kept) summary.integer_counts = std::move(counter.counts);
}

void count_strings(const ColumnSource& source, size_t rows, Summary& summary) {
  Counter<ByteSpan, StringHash, StringEqual> counter(rows);
  bool is_kept = true;
  for_each_run(source, rows, [&](size_t first, size_t end) {
    for (size_t i = first; i < end && is_kept; ++i) {
      is_kept = source.strings[i].size() <= kMaxCountedBytes && counter.add(source.strings[i]);
    }
  });
  summary.has_counts = is_kept;
  if (is_kept) summary.string_counts = std::move(counter.counts);
}

// The cells of raw columns are bytes, several for each element.
template <typename T>
void add_elements(const ColumnSource& source, size_t rows, NumberRange& range) {
  const size_t bytes = source.cell == Cell::kRaw ? 1 : sizeof(T);
  for_each_run(source, rows, [&](size_t first, size_t end) {
    const auto* values = reinterpret_cast<const T*>(source.values + first * bytes);
    add_numbers(values, (end - first) * bytes / sizeof(T), range);
  });
}

void summarize_numbers(const ColumnSource& source, Element element, size_t rows, bool counts,
                       Summary& summary) {
  if (element == Element::kComplex) return;
  if (element == Element::kTime) {
    const size_t bytes = source.cell == Cell::kRaw ? 1 : 8;
    for_each_run(source, rows, [&](size_t first, size_t end) {
      const auto* values = reinterpret_cast<const int64_t*>(source.values + first * bytes);
      add_times(values, (end - first) * bytes / 8, summary.numbers);
    });
    return;
  }
  with_number(element, [&](auto zero) {
    using T = decltype(zero);
    add_elements<T>(source, rows, summary.numbers);
    if constexpr (std::is_integral_v<T>) {
      using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
      if (counts) count_integers<Stored>(source, rows, summary);
    }
  });
}

}  // namespace

Summary summarize(const ColumnSource& source, Element element, size_t rows, bool counts) {
  Summary summary;
  for (size_t row = 0; row < rows && source.present != nullptr; ++row) {
    summary.missing += source.present[row] == 0;
  }
  if (source.layout != Layout::kFixed) {
    for (size_t row = 0; row < rows; ++row) {
      if (!source.is_present(row)) continue;
      summary.lengths.add(static_cast<uint64_t>(source.splits[row + 1] - source.splits[row]));
    }
  }
  if (!is_string(element)) {
    summarize_numbers(source, element, rows, counts, summary);
    return summary;
  }
  for_each_run(source, rows, [&](size_t first, size_t end) {
    for (size_t i = first; i < end; ++i) summary.bytes.add(source.strings[i].size());
  });
  if (counts) count_strings(source, rows, summary);
  return summary;
}

}  // namespace datum
