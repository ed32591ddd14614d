#include "framing.h"

#include <algorithm>

namespace datum {
namespace {

// How many times the bytes of the stream may be checksummed without result. Regular files need
// about one pass; the limit keeps a file of false headers from costing quadratic time.
constexpr uint64_t kMaxWastedPasses = 16;

constexpr uint64_t kCopyBytes = 64 * 1024;           // copied at a time if a file is damaged
constexpr uint64_t kMaxReserved = 16 * 1024 * 1024;  // reserved on an estimate

uint64_t load_u64(const uint8_t* at) {
  uint64_t value;
  std::memcpy(&value, at, 8);
  return value;
}

uint32_t load_u32(const uint8_t* at) {
  uint32_t value;
  std::memcpy(&value, at, 4);
  return value;
}

bool header_crc_matches(const uint8_t* header) {
  return mask_crc(crc32c(header, 8)) == load_u32(header + 8);
}

// Returns the size of the frame of a payload; saturates instead of wrapping.
uint64_t frame_size(uint64_t payload_bytes) {
  return payload_bytes > UINT64_MAX - kFrameBytes ? UINT64_MAX : payload_bytes + kFrameBytes;
}

bool payload_crc_matches(const uint8_t* frame, uint64_t length) {
  const uint8_t* payload = frame + kHeaderBytes;
  return crc_matches(crc32c(payload, static_cast<size_t>(length)), payload + length);
}

}  // namespace

bool has_valid_header(ByteSpan bytes) {
  return bytes.size() >= kHeaderBytes && header_crc_matches(bytes.data());
}

bool crc_matches(uint32_t crc, const uint8_t* footer) { return mask_crc(crc) == load_u32(footer); }

std::optional<DamageKind> check_frame(ByteSpan file, uint64_t offset,
                                      std::optional<uint64_t>& length) {
  if (offset > file.size() || file.size() - offset < kHeaderBytes) return DamageKind::kTornHeader;
  const uint8_t* frame = file.data() + offset;
  const uint64_t stored = load_u64(frame);
  if (!header_crc_matches(frame) || stored != length.value_or(stored)) {
    return DamageKind::kLengthChecksum;
  }
  length = stored;
  if (frame_size(stored) > file.size() - offset) return DamageKind::kTornPayload;
  return std::nullopt;
}

std::optional<DamageKind> check_record(ByteSpan file, uint64_t offset, uint64_t length) {
  std::optional<uint64_t> expected = length;
  if (const std::optional<DamageKind> damage = check_frame(file, offset, expected)) return damage;
  if (!payload_crc_matches(file.data() + offset, length)) return DamageKind::kPayloadChecksum;
  return std::nullopt;
}

void Scanner::scan(ByteSpan piece, bool last, size_t max_records, std::vector<RecordRef>& records) {
  const uint64_t piece_start = position_;
  const auto rest = [&] { return piece.subspan(static_cast<size_t>(position_ - piece_start)); };
  for (size_t found = 0; found < max_records && !fatal_;) {
    RecordRef record;
    Step step = open_damage_ ? resynchronise(rest(), last) : read_one(rest(), last, record);
    if (step == Step::kRecord) {
      records.push_back(record);
      ++found;
    } else if (step != Step::kLost) {
      return;
    }
  }
}

Scanner::Copied Scanner::copy_record(ByteSpan rest, uint64_t max_bytes, Buffer& out,
                                     RecordRef& record) {
  if (open_damage_ || fatal_ || rest.size() < kFrameBytes) return Copied::kNothing;
  uint8_t header[kHeaderBytes];
  std::memcpy(header, rest.data(), kHeaderBytes);
  const uint64_t length = load_u64(header);
  if (options_.check_lengths && !header_crc_matches(header)) return Copied::kNothing;
  if (length > options_.max_record_bytes || length > rest.size() - kFrameBytes) {
    return Copied::kNothing;
  }
  const auto size = static_cast<size_t>(length);
  if (size + kFrameBytes > max_bytes) return Copied::kTooLarge;
  const size_t start = out.size();
  uint8_t* copy = out.extend(size + kFrameBytes);
  std::memcpy(copy, header, kHeaderBytes);
  const uint8_t* payload = rest.data() + kHeaderBytes;
  if (options_.check_payloads) {
    const uint32_t crc = crc32c_copy(payload, size, copy + kHeaderBytes);
    std::memcpy(copy + kHeaderBytes + size, payload + size, kFooterBytes);
    if (!crc_matches(crc, copy + kHeaderBytes + size)) {
      out.truncate(start);
      return Copied::kNothing;
    }
  } else {
    std::memcpy(copy + kHeaderBytes, payload, size + kFooterBytes);
  }
  record = {position_, length, number_++};
  position_ += size + kFrameBytes;
  return Copied::kRecord;
}

// Records are copied one by one as long as they are intact; at damage, pieces are copied for
// `scan`, until it finds intact ones again.
void scan_copy(ByteSpan file, Scanner& scanner, size_t max_records, uint64_t max_bytes,
               CopiedRecords& found) {
  Buffer& bytes = found.bytes;
  std::vector<RecordRef>& records = found.records;
  found.base = scanner.position();
  scanner.set_stream_bytes(file.size());
  if (const uint64_t seen = scanner.records_seen(); seen > 0) {
    // Estimated from the records so far, with some reserve.
    const uint64_t mean = found.base / seen + found.base / seen / 16 + 1;
    const uint64_t max = std::min({max_bytes, kMaxReserved, file.size() - found.base});
    bytes.reserve(static_cast<size_t>(max_records > max / mean ? max : max_records * mean));
  }
  uint64_t refused = UINT64_MAX;  // where there is no intact record
  while (records.size() < max_records && !scanner.fatal() && scanner.position() < file.size()) {
    const uint64_t position = scanner.position();
    if (records.empty() && position >= found.base + bytes.size()) {
      bytes.truncate(0);  // nothing was found in it
      found.base = position;
    }
    const uint64_t copied = found.base + bytes.size();
    const ByteSpan rest = file.subspan(static_cast<size_t>(position));
    const auto skip = static_cast<size_t>(position - found.base);
    if (position != refused && position <= copied) {
      bytes.truncate(skip);
      const uint64_t room = records.empty() ? UINT64_MAX : max_bytes - std::min(max_bytes, skip);
      RecordRef record;
      const Scanner::Copied step = scanner.copy_record(rest, room, bytes, record);
      if (step == Scanner::Copied::kTooLarge) return;
      if (step == Scanner::Copied::kRecord) {
        records.push_back(record);
      } else {
        refused = position;
      }
      continue;
    }
    const uint64_t wanted = std::min<uint64_t>(scanner.bytes_wanted(), rest.size());
    const uint64_t end =
        std::min<uint64_t>(std::max(position + wanted, copied + kCopyBytes), file.size());
    if (!records.empty() && end - found.base > max_bytes) return;
    const auto size = static_cast<size_t>(end - copied);
    if (size > 0) std::memcpy(bytes.extend(size), file.data() + copied, size);
    const ByteSpan piece = ByteSpan(bytes.data(), bytes.size()).subspan(skip);
    scanner.scan(piece, end == file.size(), max_records - records.size(), records);
  }
}

Scanner::Step Scanner::read_one(ByteSpan rest, bool last, RecordRef& record) {
  bytes_wanted_ = kHeaderBytes;
  if (rest.size() < kHeaderBytes) {
    if (!last) return Step::kNeedMore;
    if (rest.empty()) return Step::kEnd;
    return on_damage(rest, last, DamageKind::kTornHeader, rest.size());
  }
  const uint64_t length = load_u64(rest.data());
  if (options_.check_lengths && !header_crc_matches(rest.data())) {
    return on_damage(rest, last, DamageKind::kLengthChecksum, 0);
  }
  const uint64_t size = frame_size(length);
  if (length > options_.max_record_bytes) {
    return on_damage(rest, last, DamageKind::kOversized, 0);
  }
  if (size > rest.size()) {
    if (size > bytes_left(rest, last)) return on_damage(rest, last, DamageKind::kTornPayload, 0);
    bytes_wanted_ = size;
    return Step::kNeedMore;
  }
  if (options_.check_payloads && !payload_crc_matches(rest.data(), length)) {
    // The length is trusted if what follows it is valid; otherwise the payload was truncated.
    const ByteSpan next = rest.subspan(static_cast<size_t>(size));
    if (next.size() < kHeaderBytes && !last) {
      bytes_wanted_ = size + kHeaderBytes;
      return Step::kNeedMore;
    }
    const bool length_is_right = next.empty() || has_valid_header(next);
    if (!length_is_right) has_given_up_ = !may_checksum(length, position_ + size);
    return on_damage(rest, last, DamageKind::kPayloadChecksum, length_is_right ? size : 0);
  }
  record = {position_, length, number_++};
  position_ += size;
  return Step::kRecord;
}

// Returns the bytes of the stream from `position()` on, as far as known.
uint64_t Scanner::bytes_left(ByteSpan rest, bool last) const {
  if (last) return rest.size();
  return options_.stream_bytes == UINT64_MAX ? UINT64_MAX : options_.stream_bytes - position_;
}

// Returns the end of damage that is not skipped, as far as known; the same for any piece.
uint64_t Scanner::fatal_end(ByteSpan rest, DamageKind kind) const {
  if (kind == DamageKind::kPayloadChecksum) return position_ + frame_size(load_u64(rest.data()));
  const bool is_torn = kind == DamageKind::kTornHeader || kind == DamageKind::kTornPayload;
  if (!is_torn) return position_ + kHeaderBytes;
  return std::max(position_ + rest.size(),
                  options_.stream_bytes == UINT64_MAX ? 0 : options_.stream_bytes);
}

// `certain_bytes` are known to be lost; 0 means that a search is needed.
Scanner::Step Scanner::on_damage(ByteSpan rest, bool last, DamageKind kind,
                                 uint64_t certain_bytes) {
  open_damage_ = Damage{position_, position_ + rest.size(), number_, kind};
  const bool is_torn = kind == DamageKind::kTornHeader || kind == DamageKind::kTornPayload;
  if (options_.recovery == Recovery::kStrict ||
      (options_.recovery == Recovery::kTail && !is_torn)) {
    open_damage_->end = fatal_end(rest, kind);
    fatal_ = open_damage_;
    return Step::kEnd;
  }
  if (options_.recovery == Recovery::kTail) return finish_damage(fatal_end(rest, kind));
  if (certain_bytes > 0) return finish_damage(position_ + certain_bytes);
  search_from_ = position_ + 1;
  return resynchronise(rest, last);
}

// Searches for the next position of an intact record: valid header, valid payload.
Scanner::Step Scanner::resynchronise(ByteSpan rest, bool last) {
  size_t at = static_cast<size_t>(search_from_ - position_);
  for (; !has_given_up_ && at + kHeaderBytes <= rest.size(); ++at) {
    const uint8_t* candidate = rest.data() + at;
    const uint64_t length = load_u64(candidate);
    const uint64_t size = frame_size(length);
    if (length > options_.max_record_bytes || size > bytes_left(rest, last) - at) continue;
    if (!header_crc_matches(candidate)) continue;
    if (size > rest.size() - at) {
      search_from_ = position_ + at;
      bytes_wanted_ = size > UINT64_MAX - at ? UINT64_MAX : at + size;
      return Step::kNeedMore;
    }
    if (payload_crc_matches(candidate, length)) return finish_damage(position_ + at);
    has_given_up_ = !may_checksum(length, position_ + at + size);
  }
  if (last) return finish_damage(position_ + rest.size());
  if (has_given_up_) at = rest.size();
  // Nothing in this piece: drop it, but keep a header that may be truncated at its end.
  position_ += at;
  search_from_ = position_;
  bytes_wanted_ = kHeaderBytes;
  return Step::kNeedMore;
}

// Counts bytes that were checksummed without result, up to `stream_end`; false if too many.
bool Scanner::may_checksum(uint64_t bytes, uint64_t stream_end) {
  wasted_bytes_ += bytes;
  return wasted_bytes_ / kMaxWastedPasses <= stream_end;
}

Scanner::Step Scanner::finish_damage(uint64_t end) {
  open_damage_->end = end;
  damage_.push_back(*open_damage_);
  open_damage_.reset();
  position_ = end;
  ++number_;
  return Step::kLost;
}

}  // namespace datum
