// Records by number, gathered from their shards and parsed into columns.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "parse.h"
#include "shard_set.h"

namespace datum {

struct DamagedRow {
  size_t row;
  DamageKind kind;
};

// Columns of the intact records.
struct Batch {
  std::vector<Column> columns;
  Buffer payloads;                 // slices point into it; empty if there are none
  std::vector<DamagedRow> damage;  // rows that are missing
  std::vector<int64_t> rows;       // the rows present, if some are missing
};

// Why there is no batch.
struct BatchFault {
  enum class Code : uint8_t {
    kNone,
    kDamaged,   // `row` and `damage`
    kMismatch,  // `mismatch` says how a record does not fit the plan, or that it is malformed
    kNotOpen,   // the location of `run` is unknown, or has changed
    kChanged,   // a file of `run` is in `state` since it was read, and has `bytes`
    kStopped,
  };

  Code code = Code::kNone;
  DamagedRow damage{};
  Fault mismatch{};
  size_t run = 0;
  FileState state = FileState::kSame;
  uint64_t bytes = 0;
};

// Reads one batch after the other; each thread has its own reader.
class BatchReader {
 public:
  // Skips damaged records if `skips_damage`; otherwise the first bad row is a fault.
  BatchReader(const Plan& plan, const ShardSet& shards, bool skips_damage);

  // The numbers must be in the set. Ends early once `stop` is set.
  BatchFault read(std::span<const int64_t> numbers, const std::atomic<bool>& stop, Batch& batch);

 private:
  static constexpr size_t kMaxPinned = 256;  // runs in use by one batch at a time

  // A run that is kept open while it is in use.
  struct Pinned {
    size_t number;
    ShardRunPointer run;
  };
  struct Found {
    const ShardRun* run;
    uint64_t place;          // position in the run
    const uint8_t* payload;  // null if damaged
    size_t length;
  };

  BatchFault find_runs(std::span<const int64_t> numbers, size_t& end);
  const ShardRun* pin(size_t run);
  void unpin_all();
  void find_frames(size_t begin, size_t end);
  bool copy_payloads(size_t begin, size_t end, const std::atomic<bool>& stop, Buffer& payloads);
  BatchFault check_files() const;
  BatchFault parse(Batch& batch);
  RecordRun copied(const Buffer& payloads) const;
  void drop_malformed(const Buffer& payloads);
  void add_damage(size_t row, DamageKind kind);

  const Plan& plan_;
  const ShardSet& shards_;
  bool skips_damage_;
  bool has_slices_ = false;
  std::vector<Pinned> pinned_;
  // The position of a run in `pinned_`, plus one: a hash table with linear probing.
  std::array<uint16_t, 4 * kMaxPinned> pin_of_{};
  std::vector<Found> found_;
  std::vector<int64_t> starts_;  // of the copied payloads
  std::vector<int64_t> lengths_;
  std::vector<int64_t> rows_;  // and their rows
  std::vector<DamagedRow> damage_;
  size_t end_ = 0;  // rows from here on are ignored
};

}  // namespace datum
