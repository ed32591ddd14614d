#include "shard_set.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "prefetch.h"

namespace datum {
namespace {

// How often a file is checked for changes: with few of them for nearly each batch, with many so
// seldom that all checks together take a few percent of the time.
constexpr int64_t kMaxCheckMs = 20;
constexpr size_t kChecksPerMs = 16;
constexpr uint64_t kDropBytes = 256 * 1024 * 1024;  // dropping more often costs time to map again
constexpr size_t kMaxCopied = 16 * 1024;            // reading a small file is faster than mapping

uint64_t load_u64(const uint8_t* at) {
  uint64_t value;
  std::memcpy(&value, at, 8);
  return value;
}

}  // namespace

OpenFault ShardRun::open(const ShardPlace& place, uint64_t records) {
  using Code = OpenFault::Code;
  if (const int error = data_.open(place.path, kMaxCopied, place.version.is_filling())) {
    return {.code = Code::kSystem, .got = static_cast<uint64_t>(error)};
  }
  const FileVersion& version = data_.version();
  if (version.bytes != place.version.bytes) {
    return {.code = Code::kBytes, .expected = place.version.bytes, .got = version.bytes};
  }
  if (version != place.version) return {.code = Code::kVersion};
  if (place.crc) data_.expect(*place.crc);
  uint64_t total = 0;
  if (place.offsets) {
    offsets_ = place.offsets;
    total = offsets_->size();
  } else {
    if (const OpenFault fault = open_index(place); fault.code != Code::kNone) return fault;
    total = place.total_records;
  }
  first_ = place.first;
  total_records_ = std::max<uint64_t>(total, 1);
  if (!place.offsets && (first_ > total || records > total - first_)) {
    return {.code = Code::kIndexRecords, .expected = first_ + records, .got = total};
  }
  return {};
}

OpenFault ShardRun::open_index(const ShardPlace& place) {
  using Code = OpenFault::Code;
  if (const int error = index_.open(place.index, kMaxCopied)) {
    return {.code = Code::kIndexSystem, .got = static_cast<uint64_t>(error)};
  }
  if (place.index_version && index_.version() != *place.index_version) {
    return {.code = Code::kVersion};
  }
  IndexView view;
  const IndexFault fault = read_index_header(index_.bytes(), view);
  if (fault != IndexFault::kNone) return {.code = Code::kIndex, .index = fault};
  const uint64_t bytes = place.version.bytes;
  if (view.stream_bytes != bytes) {
    return {.code = Code::kIndexBytes, .expected = bytes, .got = view.stream_bytes};
  }
  if (view.records != place.total_records) {
    return {.code = Code::kIndexRecords, .expected = place.total_records, .got = view.records};
  }
  if (place.crc && view.shard_crc != 0 && view.shard_crc != *place.crc) {
    return {.code = Code::kIndexShard, .expected = *place.crc, .got = view.shard_crc};
  }
  table_ = view.table;
  return {};
}

std::optional<FramePlace> ShardRun::find(uint64_t place) const {
  const uint64_t record = first_ + place;
  const uint64_t size = data_.bytes().size();
  if (table_ == nullptr) {
    if (record >= offsets_->size()) return std::nullopt;
    const int64_t offset = (*offsets_)[static_cast<size_t>(record)];
    if (offset < 0 || static_cast<uint64_t>(offset) > size) return std::nullopt;
    return FramePlace{.offset = static_cast<uint64_t>(offset)};
  }
  const uint8_t* entry = table_ + 8 * record;
  const uint64_t offset = load_u64(entry);
  const uint64_t next = record + 1 < total_records_ ? load_u64(entry + 8) : size;
  if (next > size || offset > next || next - offset < kFrameBytes) return std::nullopt;
  return FramePlace{.offset = offset, .length = next - offset - kFrameBytes};
}

void ShardRun::prefetch(uint64_t place) const {
  if (table_ != nullptr) datum::prefetch(table_ + 8 * (first_ + place));
}

FileState ShardRun::state(int64_t now_ms, int64_t every_ms, uint64_t& bytes_now) const {
  const bool is_due = now_ms - checked_ms_.load(std::memory_order_relaxed) >= every_ms;
  if (!is_due && !data_.has_lost_bytes() && !index_.has_lost_bytes()) return FileState::kSame;
  FileState state = data_.state(bytes_now);
  if (state == FileState::kSame) {
    state = index_.state(bytes_now);
    if (state == FileState::kTouched) state = FileState::kSame;  // frames show wrong offsets
  }
  if (state == FileState::kSame) checked_ms_.store(now_ms, std::memory_order_relaxed);
  return state;
}

void ShardRun::drop_pages() const {
  data_.drop_pages();
  index_.drop_pages();
}

ShardSet::ShardSet(std::vector<int64_t> ends, size_t max_open)
    : ends_(std::move(ends)), max_open_(std::max<size_t>(max_open, 1)) {
  if (ends_.empty() || ends_[0] != 0 || !std::is_sorted(ends_.begin(), ends_.end())) {
    throw std::invalid_argument("expected ends of runs: 0, then numbers that never fall");
  }
  is_known_ = std::make_unique<std::atomic<bool>[]>(runs());
  entries_.resize(runs());
  if (records() > 0)
    runs_per_record_ = static_cast<double>(runs()) / static_cast<double>(records());
}

int64_t ShardSet::check_every_ms() const {
  const auto wanted = static_cast<int64_t>(std::min<size_t>(runs() / kChecksPerMs, 1000));
  return std::clamp<int64_t>(wanted, 1, kMaxCheckMs);
}

bool ShardSet::contains(std::span<const int64_t> numbers) const {
  const auto is_inside = [this](int64_t number) { return number >= 0 && number < records(); };
  return std::all_of(numbers.begin(), numbers.end(), is_inside);
}

size_t ShardSet::find_run(int64_t number) const {
  // Most shards have about the same size.
  const auto guess =
      std::min(static_cast<size_t>(static_cast<double>(number) * runs_per_record_), runs() - 1);
  if (ends_[guess] <= number && number < ends_[guess + 1]) return guess;
  const auto after = std::upper_bound(ends_.begin(), ends_.end(), number);
  return static_cast<size_t>(after - ends_.begin()) - 1;
}

std::vector<size_t> ShardSet::missing(std::span<const int64_t> numbers) const {
  std::vector<size_t> found;
  for (const int64_t number : numbers) {
    const size_t run = find_run(number);
    if (!is_known_[run].load(std::memory_order_acquire)) found.push_back(run);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

OpenFault ShardSet::add(size_t run, ShardPlace place) {
  const auto opened = std::make_shared<ShardRun>();
  const OpenFault fault = opened->open(place, records_of(run));
  if (fault.code != OpenFault::Code::kNone) return fault;
  if (!place.offsets) place.index_version = opened->index().version();
  {
    const std::lock_guard lock(mutex_);
    entries_[run].place = std::make_shared<const ShardPlace>(std::move(place));
  }
  keep(run, opened);
  is_known_[run].store(true, std::memory_order_release);
  return {};
}

ShardRunPointer ShardSet::get_if_open(size_t run) const {
  const std::lock_guard lock(mutex_);
  return entries_[run].opened;
}

ShardRunPointer ShardSet::get(size_t run) const {
  std::shared_ptr<const ShardPlace> place;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[run];
    if (entry.opened) {
      uses_.splice(uses_.begin(), uses_, entry.use);
      return entry.opened;
    }
    place = entry.place;
  }
  if (!place) return nullptr;
  auto opened = std::make_shared<ShardRun>();
  const OpenFault fault = opened->open(*place, records_of(run));
  if (fault.code == OpenFault::Code::kNone) return keep(run, std::move(opened));
  forget(run, place);  // reported when it is opened again
  return nullptr;
}

// Two threads may have opened the same run: the first one's stays.
ShardRunPointer ShardSet::keep(size_t run, ShardRunPointer opened) const {
  std::vector<ShardRunPointer> closed;  // freed outside of the lock
  if (opened->has_large_frames()) has_large_frames_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[run];
  if (!entry.opened) {
    entry.opened = std::move(opened);
    entry.use = uses_.insert(uses_.begin(), run);
    open_bytes_ += entry.opened->bytes().size();
    ShardRunPointer kept = entry.opened;
    close_some(closed);
    return kept;
  }
  return entry.opened;
}

void ShardSet::close_some(std::vector<ShardRunPointer>& closed) const {
  size_t count = uses_.size() > max_open_ ? uses_.size() - max_open_ : 0;
  if (mapped_files() > kMaxMappedFiles / 2) count = std::max<size_t>(count, 2);  // other sets' too
  count = std::min(count, uses_.size() - 1);
  for (; count > 0; --count) {
    Entry& entry = entries_[uses_.back()];
    uses_.pop_back();
    open_bytes_ -= entry.opened->bytes().size();
    closed.push_back(std::exchange(entry.opened, nullptr));
  }
}

void ShardSet::forget(size_t run, const std::shared_ptr<const ShardPlace>& place) const {
  const std::lock_guard lock(mutex_);
  if (entries_[run].place != place) return;  // another place was set meanwhile
  entries_[run].place = nullptr;
  is_known_[run].store(false, std::memory_order_release);
}

void ShardSet::count_read(uint64_t bytes) const {
  const uint64_t before = read_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (before / kDropBytes == (before + bytes) / kDropBytes) return;
  const std::lock_guard lock(mutex_);
  if (open_bytes_ <= kDropBytes) return;
  for (const size_t run : uses_) entries_[run].opened->drop_pages();
}

}  // namespace datum
