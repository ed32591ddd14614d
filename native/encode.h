// Columns into serialized, framed records, over several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "columns.h"

namespace datum {

// The values to write for one key. The caller keeps the memory alive and holds to the layout:
// `splits` has rows + 1 entries, `inner_splits` steps + 1, both checked by `encode_records`.
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
  const uint8_t* present = nullptr;  // one byte for each row; null when all are there

  bool is_sequence() const { return layout == Layout::kSteps || layout == Layout::kNestedSteps; }
};

enum class EncodeError : uint8_t { kNone, kSplits, kValues, kRecordTooLarge };

struct EncodeFault {
  EncodeError error = EncodeError::kNone;
  size_t row = 0;
};

// Records with their lengths and CRCs around them.
struct Encoded {
  Buffer framed;
  std::vector<uint64_t> offsets;  // where each record starts
};

// Whether `source` holds what `rows` rows need.
EncodeError check_source(const ColumnSource& source, size_t rows);

// Writes `rows` records with sorted keys: Examples, or SequenceExamples when a source is a
// sequence. The bytes do not depend on `threads`.
EncodeFault encode_records(std::vector<ColumnSource> sources, size_t rows, size_t threads,
                           Encoded& encoded);

// Frames payloads that are serialized already.
void frame_payloads(const std::vector<ByteSpan>& payloads, Encoded& encoded);

}  // namespace datum
