// Ranges of records in shard files, and the location of the record of each number.
//
// Opening a run reads and checks only the header of the index: a billion records open immediately.
// A wrong offset cannot return wrong records, because every frame is checked when it is read. Only
// a limited number of runs are open at a time; the others are opened again when needed, as long as
// their files are the same.
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
    kSystem,        // `got` is the errno
    kIndexSystem,   // the same, of the index
    kBytes,         // the file has another size
    kVersion,       // the file is another one, or was changed
    kIndex,         // the header of the index is wrong: see `index`
    kIndexBytes,    // the index is of a file of another size
    kIndexRecords,  // the index has another number of records
    kIndexShard,    // the index is of a file with another checksum
  };

  Code code = Code::kNone;
  uint64_t expected = 0;
  uint64_t got = 0;
  IndexFault index = IndexFault::kNone;
};

// The location of a run, and the expected properties of its files.
struct ShardPlace {
  uint64_t first = 0;  // the first record of the run, within the shard
  std::filesystem::path path{};
  FileVersion version{};
  std::filesystem::path index{};
  std::optional<FileVersion> index_version{};  // once it was opened
  uint64_t total_records = 0;                  // of the shard
  std::optional<uint32_t> crc{};               // of the shard, if known
  // The offsets of the records of the shard, instead of an index; -1 for a lost one, as are those
  // after the last offset.
  std::shared_ptr<const std::vector<int64_t>> offsets{};
};

// The frame of a record, as far as known without reading it.
struct FramePlace {
  uint64_t offset = 0;
  std::optional<uint64_t> length{};  // of the payload, if there is an index
};

// Consecutive records of one shard.
class ShardRun {
 public:
  OpenFault open(const ShardPlace& place, uint64_t records);

  ByteSpan bytes() const { return data_.bytes(); }
  const MappedFile& file() const { return data_; }
  const MappedFile& index() const { return index_; }
  // Whether records are so large that each is worth a system call to read it ahead.
  bool has_large_frames() const { return bytes().size() / total_records_ >= kLargeFrame; }

  // Returns the location of the record at `place` in the run; nothing if it is lost, or if its
  // offsets are impossible.
  std::optional<FramePlace> find(uint64_t place) const;
  // Prefetches the memory that `find` will read.
  void prefetch(uint64_t place) const;

  // Returns the state of the file or its index. Makes a system call every `every_ms` at most, or
  // always if bytes were lost. `now_ms` is a monotonic clock.
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

// Many runs, for use from any number of threads.
class ShardSet {
 public:
  // Run r has the numbers from ends[r] up to ends[r + 1]; throws std::invalid_argument unless they
  // start at 0 and never decrease. At most `max_open` runs stay open while not in use.
  explicit ShardSet(std::vector<int64_t> ends, size_t max_open = kMaxOpen);
  ShardSet(const ShardSet&) = delete;
  ShardSet& operator=(const ShardSet&) = delete;

  // How often to check the files of a run for changes.
  int64_t check_every_ms() const;
  size_t runs() const { return ends_.size() - 1; }
  int64_t records() const { return ends_.back(); }
  int64_t start_of(size_t run) const { return ends_[run]; }
  uint64_t records_of(size_t run) const {
    return static_cast<uint64_t>(ends_[run + 1] - ends_[run]);
  }
  bool contains(std::span<const int64_t> numbers) const;

  // Returns the run of a number of the set.
  size_t find_run(int64_t number) const;
  // Returns the runs of these numbers whose locations are unknown, each once, in order.
  std::vector<size_t> missing(std::span<const int64_t> numbers) const;

  // Opens a run, whose location is known from then on unless there is a fault.
  OpenFault add(size_t run, ShardPlace place);
  // Returns the run, opened again if necessary; null if its location is unknown. A location whose
  // files have changed is forgotten.
  ShardRunPointer get(size_t run) const;
  // Returns the run if it is open.
  ShardRunPointer get_if_open(size_t run) const;
  // Whether any opened run has large frames.
  bool has_large_frames() const { return has_large_frames_.load(std::memory_order_relaxed); }

  // Counts bytes that were read: now and then the pages of all files are released, unless they are
  // few. Otherwise they would all count as memory of this process in the end.
  void count_read(uint64_t bytes) const;

 private:
  // Each run may map two files, data and index: a fraction of the limit of a process.
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
  mutable std::list<size_t> uses_;  // open runs, the most recently used first
  mutable uint64_t open_bytes_ = 0;

  mutable std::atomic<uint64_t> read_bytes_{0};
  mutable std::atomic<bool> has_large_frames_{false};
};

}  // namespace datum
