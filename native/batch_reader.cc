#include "batch_reader.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "prefetch.h"

namespace datum {
namespace {

constexpr size_t kLine = 64;
// How far ahead memory is prefetched: early enough to arrive, short enough for the queue.
constexpr size_t kHeadersAhead = 16;
constexpr size_t kPayloadsAhead = 3;
constexpr size_t kPrefetchedBytes = 2048;  // the processor prefetches the rest itself
constexpr size_t kRowsPerCheck = 256;      // checking a file costs as much as several rows

int64_t now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

BatchReader::BatchReader(const Plan& plan, const ShardSet& shards, bool skips_damage)
    : plan_(plan), shards_(shards), skips_damage_(skips_damage) {
  for (const ColumnSpec& spec : plan.columns()) has_slices_ |= spec.cell == Cell::kSlice;
}

// Rows are read in stretches, so that a batch of any size keeps few files open at a time.
BatchFault BatchReader::read(std::span<const int64_t> numbers, const std::atomic<bool>& stop,
                             Batch& batch) {
  guard_mapped_files();
  damage_.clear();
  starts_.clear();
  lengths_.clear();
  rows_.clear();
  found_.resize(numbers.size());
  end_ = numbers.size();
  size_t begin = 0;
  do {
    size_t end = begin;
    BatchFault fault = find_runs(numbers, end);
    if (fault.code == BatchFault::Code::kNone) {
      find_frames(begin, std::min(end, end_));
      const bool is_done = copy_payloads(begin, std::min(end, end_), stop, batch.payloads);
      if (!is_done) fault.code = BatchFault::Code::kStopped;
      if (is_done) fault = check_files();
    }
    unpin_all();
    if (fault.code != BatchFault::Code::kNone) return fault;
    begin = end;
  } while (begin < end_);
  return parse(batch);
}

// Finds the runs of as many rows as may be read together, from `end` on, and advances `end`. Each
// pass prefetches the memory that the next one reads, so that records wait for it together.
BatchFault BatchReader::find_runs(std::span<const int64_t> numbers, size_t& end) {
  for (; end < end_; ++end) {
    const size_t run = shards_.find_run(numbers[end]);
    const ShardRun* opened = pin(run);
    if (opened == nullptr) {
      if (pinned_.size() == kMaxPinned) return {};
      return {.code = BatchFault::Code::kNotOpen, .run = run};
    }
    const auto place = static_cast<uint64_t>(numbers[end] - shards_.start_of(run));
    opened->prefetch(place);
    found_[end] = {opened, place, nullptr, 0};
  }
  return {};
}

// Null if it cannot be opened, or if too many are in use.
const ShardRun* BatchReader::pin(size_t run) {
  size_t slot = run % pin_of_.size();
  for (; pin_of_[slot] != 0; slot = (slot + 1) % pin_of_.size()) {
    const Pinned& pinned = pinned_[pin_of_[slot] - size_t{1}];
    if (pinned.number == run) return pinned.run.get();
  }
  if (pinned_.size() == kMaxPinned) return nullptr;
  ShardRunPointer opened = shards_.get(run);
  if (!opened) return nullptr;
  pinned_.push_back({run, std::move(opened)});
  pin_of_[slot] = static_cast<uint16_t>(pinned_.size());
  return pinned_.back().run.get();
}

void BatchReader::unpin_all() {
  pinned_.clear();
  pin_of_.fill(0);
}

// Copies count only if the files have not changed since they were opened.
BatchFault BatchReader::check_files() const {
  const int64_t now = now_ms();
  const bool is_cheap = found_.size() >= kRowsPerCheck * pinned_.size();
  const int64_t every_ms = is_cheap || !damage_.empty() ? 0 : shards_.check_every_ms();
  for (const Pinned& pinned : pinned_) {
    uint64_t bytes = 0;
    const FileState state = pinned.run->state(now, every_ms, bytes);
    if (state == FileState::kSame) continue;
    return {
        .code = BatchFault::Code::kChanged, .run = pinned.number, .state = state, .bytes = bytes};
  }
  return {};
}

// Finds the payload of each row, and checks its header, which makes its length trustworthy.
void BatchReader::find_frames(size_t begin, size_t end) {
  std::optional<FramePlace> ahead[kHeadersAhead];
  const auto look_ahead = [&](size_t row) {
    const Found& found = found_[row];
    std::optional<FramePlace>& place = ahead[row % kHeadersAhead];
    place = found.run->find(found.place);
    if (place) prefetch(found.run->bytes().data() + place->offset);
  };
  for (size_t row = begin; row < std::min(begin + kHeadersAhead, end); ++row) look_ahead(row);
  for (size_t row = begin; row < std::min(end, end_); ++row) {
    std::optional<FramePlace> place = ahead[row % kHeadersAhead];
    if (row + kHeadersAhead < end) look_ahead(row + kHeadersAhead);
    Found& found = found_[row];
    if (!place) {
      add_damage(row, DamageKind::kLost);
      continue;
    }
    const ByteSpan file = found.run->bytes();
    if (const auto damage = check_frame(file, place->offset, place->length)) {
      add_damage(row, *damage);
      continue;
    }
    found.payload = file.data() + place->offset + kHeaderBytes;
    found.length = static_cast<size_t>(*place->length);
  }
}

// False if it was stopped.
bool BatchReader::copy_payloads(size_t begin, size_t end, const std::atomic<bool>& stop,
                                Buffer& payloads) {
  end = std::min(end, end_);
  size_t total = 0;
  for (size_t row = begin; row < end; ++row) total += found_[row].length;
  if (begin == 0) payloads.reserve(total + 1);  // never null
  const auto look_ahead = [](const Found& found) {
    const size_t size = std::min(found.length, kPrefetchedBytes);
    for (size_t at = 0; at < size; at += kLine) prefetch(found.payload + at);
  };
  for (size_t row = begin; row < std::min(end, end_); ++row) {
    if (stop.load(std::memory_order_relaxed)) return false;
    if (row + kPayloadsAhead < end) look_ahead(found_[row + kPayloadsAhead]);
    const Found& found = found_[row];
    if (found.payload == nullptr) continue;
    const size_t start = payloads.size();
    uint8_t* copy = payloads.extend(found.length);
    // Checks the copy: what is parsed is what was checked, even if the file changes.
    const uint32_t crc = crc32c_copy(found.payload, found.length, copy);
    if (!crc_matches(crc, found.payload + found.length)) {
      payloads.truncate(start);
      add_damage(row, DamageKind::kPayloadChecksum);
      continue;
    }
    starts_.push_back(static_cast<int64_t>(start));
    lengths_.push_back(static_cast<int64_t>(found.length));
    rows_.push_back(static_cast<int64_t>(row));
  }
  shards_.count_read(total);
  return true;
}

void BatchReader::add_damage(size_t row, DamageKind kind) {
  if (!skips_damage_) {
    damage_.clear();
    end_ = row;
  }
  damage_.push_back({row, kind});
}

RecordRun BatchReader::copied(const Buffer& payloads) const {
  return {{payloads.data(), payloads.size()}, starts_, lengths_};
}

BatchFault BatchReader::parse(Batch& batch) {
  Fault fault = parse_records(plan_, copied(batch.payloads), 1, batch.columns);
  if (fault.code == FaultCode::kMalformed && skips_damage_) {
    drop_malformed(batch.payloads);
    fault = parse_records(plan_, copied(batch.payloads), 1, batch.columns);
  }
  if (fault.code != FaultCode::kNone) {
    fault.row = static_cast<size_t>(rows_[fault.row]);
    return {.code = BatchFault::Code::kMismatch, .mismatch = fault};
  }
  if (!has_slices_) batch.payloads = Buffer();
  if (damage_.empty()) return {};
  if (!skips_damage_) return {.code = BatchFault::Code::kDamaged, .damage = damage_.front()};
  std::sort(damage_.begin(), damage_.end(),
            [](const DamagedRow& a, const DamagedRow& b) { return a.row < b.row; });
  batch.damage = damage_;
  batch.rows = rows_;
  return {};
}

// Parses each record on its own: a malformed one leaves columns in an undefined state.
void BatchReader::drop_malformed(const Buffer& payloads) {
  const RecordRun run = copied(payloads);
  std::vector<Column> columns;
  size_t kept = 0;
  for (size_t i = 0; i < starts_.size(); ++i) {
    const RecordRun one{run.buffer, run.starts.subspan(i, 1), run.lengths.subspan(i, 1)};
    if (parse_records(plan_, one, 1, columns).code == FaultCode::kMalformed) {
      add_damage(static_cast<size_t>(rows_[i]), DamageKind::kMalformed);
      continue;
    }
    starts_[kept] = starts_[i];
    lengths_[kept] = lengths_[i];
    rows_[kept++] = rows_[i];
  }
  starts_.resize(kept);
  lengths_.resize(kept);
  rows_.resize(kept);
}

}  // namespace datum
