// One serialized Example or SequenceExample parsed into the columns of a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "column_builder.h"
#include "entry_memo.h"

namespace datum {

// The columns to fill, by key. Context and feature lists have separate names.
class Plan {
 public:
  explicit Plan(std::vector<ColumnSpec> columns);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const std::vector<ColumnSpec>& columns() const { return columns_; }
  bool has_sequences() const { return !sequences_.empty(); }
  // The column for a key, or -1.
  int32_t find(ByteSpan key, bool is_sequence) const;

 private:
  using Map = std::unordered_map<std::string_view, int32_t>;
  std::vector<ColumnSpec> columns_;
  Map context_;  // views of the keys in columns_
  Map sequences_;
};

// Why a record does not fit the plan.
struct Fault {
  FaultCode code = FaultCode::kNone;
  size_t row = 0;
  int32_t column = -1;
  int64_t step = -1;  // in a feature list
  int64_t expected = 0;
  int64_t got = 0;
};

// Parses records one after the other into columns.
class RecordParser {
 public:
  // For `rows` records of `payload_bytes` in total, in `buffer`.
  RecordParser(const Plan& plan, std::vector<Column>& columns, size_t rows, size_t payload_bytes,
               ByteSpan buffer);

  bool parse(ByteSpan payload, size_t row);
  const Fault& fault() const { return fault_; }

 private:
  // The entry at one position of the previous record: the next record mostly has it there too.
  struct Guess {
    ByteSpan key;
    int32_t column;
    EntryMemo memo;
  };
  static constexpr size_t kMaxGuesses = 2048;  // bounds the memory for a malicious record

  // A map being read, and the guesses for its entries.
  struct Map {
    bool is_sequence;
    int32_t nameless = -1;  // the column of the empty key
    size_t position = 0;
    std::vector<Guess> guesses{};
  };

  bool parse_map(ByteSpan bytes, Map& map);
  const uint8_t* parse_known_entries(const uint8_t* at, const uint8_t* end, Map& map);
  bool parse_entry(const uint8_t* tag_at, ByteSpan entry, Map& map, Guess& guess);
  bool parse_odd_entry(ByteSpan entry, const Map& map, Guess& guess);
  bool parse_context_value(int32_t column, const Pieces& value);
  bool parse_sequence_value(int32_t column, const Pieces& value);
  bool finish_value(int32_t column, const Outcome& outcome);
  ColumnBuilder& begin_value(int32_t column);
  bool has_kind(int32_t column, Kind kind) const;
  bool fill_absent();
  bool malformed();
  void note_mismatch(int32_t column, const Outcome& outcome);

  const Plan& plan_;
  std::vector<ColumnBuilder> builders_;
  Map context_{.is_sequence = false};
  Map sequences_{.is_sequence = true};
  size_t seen_count_ = 0;  // columns of the current row seen so far
  size_t row_ = 0;
  int64_t step_ = -1;
  std::vector<Fault> pending_;  // mismatches a later entry of the same key may still replace
  Fault fault_;
  Pieces value_pieces_;
  Pieces list_pieces_;
};

}  // namespace datum
