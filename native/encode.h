// Columns encoded as serialized, framed records, by several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "columns.h"

namespace datum {

// The values to write for one key. The caller keeps the memory alive and adheres to the layout:
// `splits` has rows + 1 entries, `inner_splits` steps + 1, both validated by `encode_records`.
struct ColumnSource {
  std::string key;
  Kind kind = Kind::kInt64;
  Layout layout = Layout::kFixed;
  Cell cell = Cell::kInt64;
  size_t unit = 1;  // values in a unit; for kRaw, bytes in a unit
  const uint8_t* values = nullptr;
  size_t values_count = 0;            // cells in `values`, or entries in `strings`
  const ByteSpan* strings = nullptr;  // for kSlice, instead of `values`
  const int64_t* splits = nullptr;
  const int64_t* inner_splits = nullptr;
  size_t inner_count = 0;            // entries in `inner_splits`
  const uint8_t* present = nullptr;  // one byte for each row; null if all are present

  bool is_sequence() const { return layout == Layout::kSteps || layout == Layout::kNestedSteps; }
  bool is_present(size_t row) const { return present == nullptr || present[row] != 0; }
};

enum class EncodeError : uint8_t { kNone, kSplits, kValues, kRecordTooLarge };

struct EncodeFault {
  EncodeError error = EncodeError::kNone;
  size_t row = 0;
};

// Records framed by their lengths and CRCs.
struct Encoded {
  Buffer framed;
  std::vector<uint64_t> offsets;  // the start of each record
};

// Checks whether `source` fits `rows` rows.
EncodeError check_source(const ColumnSource& source, size_t rows);

// Writes `rows` records with sorted keys: Examples, or SequenceExamples when a source is a
// sequence. The bytes do not depend on `threads`.
EncodeFault encode_records(std::vector<ColumnSource> sources, size_t rows, size_t threads,
                           Encoded& encoded);

// Frames serialized payloads.
void frame_payloads(const std::vector<ByteSpan>& payloads, Encoded& encoded);

}  // namespace datum
