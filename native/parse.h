// A run of records parsed into columns, by several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "record_parser.h"

namespace datum {

// Payloads in one buffer.
struct RecordRun {
  ByteSpan buffer;
  std::span<const int64_t> starts;
  std::span<const int64_t> lengths;

  size_t size() const { return starts.size(); }
  ByteSpan operator[](size_t i) const {
    return buffer.subspan(static_cast<size_t>(starts[i]), static_cast<size_t>(lengths[i]));
  }
  // Whether every payload is within the buffer; must be checked first.
  bool is_sound() const;
};

// Fills one column for each of the plan, or returns the fault of the first record that has one.
// The result does not depend on `threads`.
Fault parse_records(const Plan& plan, const RecordRun& records, size_t threads,
                    std::vector<Column>& columns);

}  // namespace datum
