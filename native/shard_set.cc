#include "shard_set.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "prefetch.h"

namespace datum {
namespace {

// How often a file is looked at, whether it was cut: with few of them nearly for each batch, with
// many so seldom that all together cost some percent of the time.
constexpr int64_t kMaxSizeCheckMs = 20;
constexpr size_t kSizeChecksPerMs = 16;
constexpr uint64_t kDropBytes = 256 * 1024 * 1024;  // to drop more often costs time to map again

uint64_t load_u64(const uint8_t* at) {
  uint64_t value;
  std::memcpy(&value, at, 8);
  return value;
}

}  // namespace

OpenFault ShardRun::open_data(const std::filesystem::path& path, uint64_t bytes) {
  using Code = OpenFault::Code;
  if (const int error = data_.open(path)) {
    return {.code = Code::kSystem, .got = static_cast<uint64_t>(error)};
  }
  const uint64_t size = data_.bytes().size();
  if (size != bytes) return {.code = Code::kBytes, .expected = bytes, .got = size};
  return {};
}

OpenFault ShardRun::open(const std::filesystem::path& path, uint64_t bytes,
                         const std::filesystem::path& index) {
  using Code = OpenFault::Code;
  const OpenFault fault = open_data(path, bytes);
  if (fault.code != Code::kNone) return fault;
  if (const int error = index_.open(index)) {
    return {.code = Code::kIndexSystem, .got = static_cast<uint64_t>(error)};
  }
  IndexView view;
  const IndexFault index_fault = read_index_header(index_.bytes(), view);
  if (index_fault != IndexFault::kNone) return {.code = Code::kIndex, .index = index_fault};
  if (view.stream_bytes != bytes) {
    return {.code = Code::kIndexBytes, .expected = bytes, .got = view.stream_bytes};
  }
  if (!has_room(view.records)) {
    return {.code = Code::kIndexRecords, .expected = first_ + records_, .got = view.records};
  }
  table_ = view.table;
  total_records_ = std::max<uint64_t>(view.records, 1);
  return {};
}

OpenFault ShardRun::open_at(const std::filesystem::path& path, uint64_t bytes,
                            std::vector<int64_t> offsets) {
  const OpenFault fault = open_data(path, bytes);
  if (fault.code != OpenFault::Code::kNone) return fault;
  offsets_ = std::move(offsets);
  total_records_ = std::max<uint64_t>(offsets_.size(), 1);
  return {};
}

std::optional<FramePlace> ShardRun::find(uint64_t place) const {
  const uint64_t record = first_ + place;
  const uint64_t size = data_.bytes().size();
  if (table_ == nullptr) {
    if (record >= offsets_.size()) return std::nullopt;
    const int64_t offset = offsets_[static_cast<size_t>(record)];
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

std::optional<uint64_t> ShardRun::size_if_cut(int64_t now_ms, int64_t every_ms) const {
  if (now_ms - checked_ms_.load(std::memory_order_relaxed) < every_ms) return std::nullopt;
  std::optional<uint64_t> size = data_.size_if_cut();
  if (!size) size = index_.size_if_cut();
  if (!size) checked_ms_.store(now_ms, std::memory_order_relaxed);
  return size;
}

void ShardRun::drop_pages() const {
  data_.drop_pages();
  index_.drop_pages();
}

ShardSet::ShardSet(std::vector<int64_t> ends) : ends_(std::move(ends)) {
  if (ends_.empty() || ends_[0] != 0 || !std::is_sorted(ends_.begin(), ends_.end())) {
    throw std::invalid_argument("expected ends of runs: 0, then numbers that never fall");
  }
  opened_ = std::make_unique<std::atomic<const ShardRun*>[]>(runs());
  if (records() > 0)
    runs_per_record_ = static_cast<double>(runs()) / static_cast<double>(records());
}

int64_t ShardSet::check_every_ms() const {
  const auto wanted = static_cast<int64_t>(std::min<size_t>(runs() / kSizeChecksPerMs, 1000));
  return std::clamp<int64_t>(wanted, 1, kMaxSizeCheckMs);
}

ShardSet::~ShardSet() {
  for (size_t run = 0; run < runs(); ++run) delete get(run);
}

bool ShardSet::contains(std::span<const int64_t> numbers) const {
  const auto is_inside = [this](int64_t number) { return number >= 0 && number < records(); };
  return std::all_of(numbers.begin(), numbers.end(), is_inside);
}

size_t ShardSet::find_run(int64_t number) const {
  // Most shards are of about one size.
  const auto guess =
      std::min(static_cast<size_t>(static_cast<double>(number) * runs_per_record_), runs() - 1);
  if (ends_[guess] <= number && number < ends_[guess + 1]) return guess;
  const auto after = std::upper_bound(ends_.begin(), ends_.end(), number);
  return static_cast<size_t>(after - ends_.begin()) - 1;
}

std::vector<size_t> ShardSet::missing(std::span<const int64_t> numbers) const {
  std::vector<size_t> found;
  if (open_count_.load(std::memory_order_acquire) == runs()) return found;
  for (const int64_t number : numbers) {
    const size_t run = find_run(number);
    if (get(run) == nullptr) found.push_back(run);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

void ShardSet::add(size_t run, std::unique_ptr<const ShardRun> opened) {
  const ShardRun* none = nullptr;
  const uint64_t bytes = opened->bytes().size();
  if (!opened_[run].compare_exchange_strong(none, opened.get(), std::memory_order_acq_rel)) return;
  static_cast<void>(opened.release());
  open_count_.fetch_add(1, std::memory_order_acq_rel);
  mapped_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

void ShardSet::count_read(uint64_t bytes) const {
  const uint64_t before = read_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (before / kDropBytes == (before + bytes) / kDropBytes) return;
  if (mapped_bytes_.load(std::memory_order_relaxed) <= kDropBytes) return;
  for (size_t run = 0; run < runs(); ++run) {
    if (const ShardRun* opened = get(run)) opened->drop_pages();
  }
}

}  // namespace datum
