// Ranges of records in shard files, and the place of the record of each number.
//
// Nothing is read or checked when a run is opened but the header of the index: a billion records
// open at once. A wrong offset cannot give wrong records, for every frame is checked when it is
// read. Only so many runs are open at a time; the others are opened again when they are needed, as
// long as their files are the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "framing.h"
#include "index.h"
#include "mapped_file.h"

namespace datum {

// Why a run cannot be opened.
struct OpenFault {
  enum class Code : uint8_t {
    kNone,
    kSystem,        // `got` is the number of the system's error
    kIndexSystem,   // the same, of the index
    kBytes,         // the file has another size
    kVersion,       // the file is another one, or was changed
    kIndex,         // the header of the index is wrong: `index` tells how
    kIndexBytes,    // the index is of a file of another size
    kIndexRecords,  // the index has another number of records
    kIndexShard,    // the index is of a file with another checksum
  };

  Code code = Code::kNone;
  uint64_t expected = 0;
  uint64_t got = 0;
  IndexFault index = IndexFault::kNone;
};

// Where a run is, and what its files have to be.
struct ShardPlace {
  uint64_t first = 0;  // record of the run, within the shard
  std::filesystem::path path{};
  FileVersion version{};
  std::filesystem::path index{};
  std::optional<FileVersion> index_version{};  // once it was opened
  uint64_t total_records = 0;                  // of the shard
  std::optional<uint32_t> crc{};               // of the shard, if it is known
  // Of the records of the shard, instead of an index; -1 for one that is lost, as are those after
  // the last offset.
  std::shared_ptr<const std::vector<int64_t>> offsets{};
};

// The frame of a record, as far as is known without having read it.
struct FramePlace {
  uint64_t offset = 0;
  std::optional<uint64_t> length{};  // of the payload, where an index tells
};

// Some records of one shard that follow one another.
class ShardRun {
 public:
  OpenFault open(const ShardPlace& place, uint64_t records);

  ByteSpan bytes() const { return data_.bytes(); }
  const MappedFile& file() const { return data_; }
  const MappedFile& index() const { return index_; }
  // Whether records are so large that each is worth a call of the system to have it read ahead.
  bool has_large_frames() const { return bytes().size() / total_records_ >= kLargeFrame; }

  // Where the record lies that is the `place`-th of the run; nothing if it is lost, or if its
  // offsets cannot be those of a record.
  std::optional<FramePlace> find(uint64_t place) const;
  // Asks for the memory that `find` will read.
  void prefetch(uint64_t place) const;

  // What became of the file or its index. The system is asked `every_ms` at most, or always if
  // bytes were lost. `now_ms` is a clock that never goes back.
  FileState state(int64_t now_ms, int64_t every_ms, uint64_t& bytes_now) const;
  void drop_pages() const;

 private:
  static constexpr uint64_t kLargeFrame = 64 * 1024;

  OpenFault open_index(const ShardPlace& place);

  uint64_t first_ = 0;          // of the run, within the shard
  uint64_t total_records_ = 1;  // of the shard
  MappedFile data_;
  MappedFile index_;
  const uint8_t* table_ = nullptr;                       // of the index
  std::shared_ptr<const std::vector<int64_t>> offsets_;  // instead of the index
  mutable std::atomic<int64_t> checked_ms_{INT64_MIN / 2};
};

using ShardRunPointer = std::shared_ptr<const ShardRun>;

// Many runs, to be used from any number of threads.
class ShardSet {
 public:
  // Run r holds the numbers from ends[r] up to ends[r + 1]; throws std::invalid_argument unless
  // they start at 0 and never fall. At most `max_open` runs stay open when nobody uses them.
  explicit ShardSet(std::vector<int64_t> ends, size_t max_open = kMaxOpen);
  ShardSet(const ShardSet&) = delete;
  ShardSet& operator=(const ShardSet&) = delete;

  // How often to ask what became of the files of a run.
  int64_t check_every_ms() const;
  size_t runs() const { return ends_.size() - 1; }
  int64_t records() const { return ends_.back(); }
  int64_t start_of(size_t run) const { return ends_[run]; }
  uint64_t records_of(size_t run) const {
    return static_cast<uint64_t>(ends_[run + 1] - ends_[run]);
  }
  bool contains(std::span<const int64_t> numbers) const;

  // The run of a number that is one of the set's.
  size_t find_run(int64_t number) const;
  // The runs of these numbers whose places are not known, each once, from the first on.
  std::vector<size_t> missing(std::span<const int64_t> numbers) const;

  // Opens a run, whose place is known from then on unless there is a fault.
  OpenFault add(size_t run, ShardPlace place);
  // The run, opened again if need be; null if its place is not known. A place that does not hold
  // what it did is forgotten.
  ShardRunPointer get(size_t run) const;
  // The run if it is open.
  ShardRunPointer get_if_open(size_t run) const;
  // Whether any run that was opened has large frames.
  bool has_large_frames() const { return has_large_frames_.load(std::memory_order_relaxed); }

  // Counts bytes that were read: now and then the pages of all files are handed back, unless they
  // are few. They would all count as memory of this process in the end.
  void count_read(uint64_t bytes) const;

 private:
  // Of tables in files that are mapped twice, data and index: a fraction of what a process may map.
  static constexpr size_t kMaxOpen = 2048;

  struct Entry {
    std::shared_ptr<const ShardPlace> place;
    ShardRunPointer opened;
    std::list<size_t>::iterator use;  // if it is open
  };

  ShardRunPointer keep(size_t run, ShardRunPointer opened) const;
  void close_some(std::vector<ShardRunPointer>& closed) const;
  void forget(size_t run, const std::shared_ptr<const ShardPlace>& place) const;

  std::vector<int64_t> ends_;
  size_t max_open_;
  double runs_per_record_ = 0;  // to guess the run of a number
  std::unique_ptr<std::atomic<bool>[]> is_known_;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::vector<Entry> entries_;
  mutable std::list<size_t> uses_;  // runs that are open, the last one used first
  mutable uint64_t open_bytes_ = 0;

  mutable std::atomic<uint64_t> read_bytes_{0};
  mutable std::atomic<bool> has_large_frames_{false};
};

}  // namespace datum
