// Runs of records in shard files, and where the record of each number lies.
//
// Files are mapped when a run is opened. Nothing is read or checked then but the header of the
// index: a billion records open at once. A wrong offset cannot give wrong records, for every frame
// is checked when it is read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
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
    kIndex,         // the header of the index is wrong: `index` tells how
    kIndexBytes,    // the index is of a file of another size
    kIndexRecords,  // the index has too few records for the run
  };

  Code code = Code::kNone;
  uint64_t expected = 0;
  uint64_t got = 0;
  IndexFault index = IndexFault::kNone;
};

// The frame of a record, as far as is known without having read it.
struct FramePlace {
  uint64_t offset = 0;
  std::optional<uint64_t> length{};  // of the payload, where an index tells
};

// Some records of one shard that follow one another.
class ShardRun {
 public:
  ShardRun(uint64_t first, uint64_t records) : first_(first), records_(records) {}

  OpenFault open(const std::filesystem::path& path, uint64_t bytes,
                 const std::filesystem::path& index);
  // With offsets of the records of the shard instead of an index; -1 for one that is lost, as are
  // those after the last offset.
  OpenFault open_at(const std::filesystem::path& path, uint64_t bytes,
                    std::vector<int64_t> offsets);

  ByteSpan bytes() const { return data_.bytes(); }
  const MappedFile& file() const { return data_; }
  uint64_t mean_frame_bytes() const { return bytes().size() / total_records_; }

  // Where the record lies that is the `place`-th of the run; nothing if it is lost, or if its
  // offsets cannot be those of a record.
  std::optional<FramePlace> find(uint64_t place) const;
  // Asks for the memory that `find` will read.
  void prefetch(uint64_t place) const;

  // The size that is left if the file or its index was found cut; looked at `every_ms` at most.
  // `now_ms` is a clock that never goes back.
  std::optional<uint64_t> size_if_cut(int64_t now_ms, int64_t every_ms) const;
  void drop_pages() const;

 private:
  OpenFault open_data(const std::filesystem::path& path, uint64_t bytes);
  // Whether the run is one of a shard of so many records.
  bool has_room(uint64_t total) const { return first_ <= total && records_ <= total - first_; }

  uint64_t first_;              // of the run, within the shard
  uint64_t records_;            // of the run
  uint64_t total_records_ = 1;  // of the shard
  MappedFile data_;
  MappedFile index_;
  const uint8_t* table_ = nullptr;  // of the index
  std::vector<int64_t> offsets_;    // instead of the index
  mutable std::atomic<int64_t> checked_ms_{INT64_MIN / 2};
};

// Many runs; those that are open can be read from any thread while others are opened.
class ShardSet {
 public:
  // Run r holds the numbers from ends[r] up to ends[r + 1]; throws std::invalid_argument unless
  // they start at 0 and never fall.
  explicit ShardSet(std::vector<int64_t> ends);
  ~ShardSet();
  ShardSet(const ShardSet&) = delete;
  ShardSet& operator=(const ShardSet&) = delete;

  // How often to ask a run whether its files were cut.
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
  // The runs of these numbers that are not open, each once, from the first on.
  std::vector<size_t> missing(std::span<const int64_t> numbers) const;

  // Adds a run that was opened; the first one stays if two are added.
  void add(size_t run, std::unique_ptr<const ShardRun> opened);
  // Null if the run is not open.
  const ShardRun* get(size_t run) const { return opened_[run].load(std::memory_order_acquire); }

  // Counts bytes that were read: now and then the pages of all files are handed back, unless they
  // are few. They would all count as memory of this process in the end.
  void count_read(uint64_t bytes) const;

 private:
  std::vector<int64_t> ends_;
  std::unique_ptr<std::atomic<const ShardRun*>[]> opened_;
  std::atomic<size_t> open_count_{0};
  double runs_per_record_ = 0;  // to guess the run of a number
  std::atomic<uint64_t> mapped_bytes_{0};
  mutable std::atomic<uint64_t> read_bytes_{0};
};

}  // namespace datum
