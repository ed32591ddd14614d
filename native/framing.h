// TFRecord framing: length, CRC of length, payload, CRC of payload; recovers from damage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "columns.h"
#include "crc32c.h"
#include "wire.h"

namespace datum {

constexpr size_t kHeaderBytes = 12;  // u64 length, u32 masked CRC of the length
constexpr size_t kFooterBytes = 4;   // u32 masked CRC of the payload
constexpr size_t kFrameBytes = kHeaderBytes + kFooterBytes;

inline void write_frame_header(uint8_t* out, uint64_t payload_bytes) {
  std::memcpy(out, &payload_bytes, 8);
  const uint32_t crc = mask_crc(crc32c(out, 8));
  std::memcpy(out + 8, &crc, 4);
}

inline void write_frame_footer(uint8_t* out, const uint8_t* payload, size_t payload_bytes) {
  const uint32_t crc = mask_crc(crc32c(payload, payload_bytes));
  std::memcpy(out, &crc, 4);
}

enum class Recovery : uint8_t {
  kStrict,  // stop at the first damage
  kTail,    // drop a truncated last record, stop at any other damage
  kSkip,    // skip all damage, to the next intact record
};

enum class DamageKind : uint8_t {
  kTornHeader,       // 1 to 11 bytes where a header should be
  kTornPayload,      // the header is valid, but the data ends before the record does
  kLengthChecksum,   // the length does not match its CRC
  kPayloadChecksum,  // the payload does not match its CRC
  kOversized,        // the length is valid but above the caller's limit
  // Only when reading by number:
  kLost,       // the start of the record is unknown
  kMalformed,  // the record is intact, but not a message
};

struct Damage {
  uint64_t offset;  // first byte lost
  uint64_t end;     // first byte after the loss
  uint64_t record;  // the number the lost record would have had
  DamageKind kind;
};

struct ScanOptions {
  Recovery recovery = Recovery::kStrict;
  bool check_lengths = true;   // the CRC of each length
  bool check_payloads = true;  // the CRC of each payload
  uint64_t max_record_bytes = UINT64_MAX;
  uint64_t stream_bytes = UINT64_MAX;  // of all pieces, if known: a longer record is truncated
};

struct RecordRef {
  uint64_t offset;  // of the header, counted from the start of the stream
  uint64_t length;  // of the payload
  uint64_t number;  // in the stream; each damaged range counts as one record
};

// Finds the records of one stream that is passed in pieces.
//
// Each call gets the bytes from `position()` on, as many as there are; records truncated by the end
// of the piece are left for the next call unless the piece is `last`. The scanner allocates only
// the list of records it found.
class Scanner {
 public:
  explicit Scanner(const ScanOptions& options) : options_(options) {}

  // Appends up to `max_records` records of `piece`, which starts at `position()`.
  void scan(ByteSpan piece, bool last, size_t max_records, std::vector<RecordRef>& records);

  // Copies the next record of a file, of which `rest` starts at `position()`, and finds it in the
  // copy, unless its frame is larger than `max_bytes` or damaged: `scan` reports it.
  enum class Copied : uint8_t { kRecord, kTooLarge, kNothing };
  Copied copy_record(ByteSpan rest, uint64_t max_bytes, Buffer& out, RecordRef& record);

  // The position at which the next piece must start.
  uint64_t position() const { return position_; }
  uint64_t records_seen() const { return number_; }
  // The start of the unread part: of the damage being searched, or `position()`.
  uint64_t unread_from() const { return open_damage_ ? open_damage_->offset : position_; }
  // Set at damage that the recovery mode does not skip: the scan is over.
  const std::optional<Damage>& fatal() const { return fatal_; }
  // The damage skipped since the last call.
  std::vector<Damage> take_damage() { return std::exchange(damage_, {}); }
  // How many bytes from `position()` the scanner needs to make progress.
  uint64_t bytes_wanted() const { return bytes_wanted_; }
  // Sets the size of the stream, once it is known.
  void set_stream_bytes(uint64_t bytes) { options_.stream_bytes = bytes; }

 private:
  enum class Step : uint8_t { kRecord, kNeedMore, kEnd, kLost };

  Step read_one(ByteSpan rest, bool last, RecordRef& record);
  Step on_damage(ByteSpan rest, bool last, DamageKind kind, uint64_t certain_bytes);
  uint64_t bytes_left(ByteSpan rest, bool last) const;
  uint64_t fatal_end(ByteSpan rest, DamageKind kind) const;
  Step resynchronise(ByteSpan rest, bool last);
  Step finish_damage(uint64_t end);
  bool may_checksum(uint64_t bytes, uint64_t stream_end);

  ScanOptions options_;
  uint64_t position_ = 0;
  uint64_t number_ = 0;
  uint64_t bytes_wanted_ = kHeaderBytes;
  std::optional<Damage> open_damage_;  // while searching for the next intact record
  uint64_t search_from_ = 0;           // the stream offset at which the search continues
  uint64_t wasted_bytes_ = 0;          // payload bytes checksummed without result so far
  bool has_given_up_ = false;          // too many of them: the rest of the stream is lost
  std::optional<Damage> fatal_;
  std::vector<Damage> damage_;
};

// Records of a file, and the bytes that contain them.
struct CopiedRecords {
  Buffer bytes;
  uint64_t base = 0;  // their start in the file
  std::vector<RecordRef> records;
};

// Copies the next part of a file, and finds up to `max_records` records in the copy; fewer, but at
// least one, if they exceed `max_bytes`; in a damaged file, 64 KiB more. The bytes that are checked
// are those that are kept, even if the file changes.
void scan_copy(ByteSpan file, Scanner& scanner, size_t max_records, uint64_t max_bytes,
               CopiedRecords& found);

// Returns whether `bytes` starts with a header whose CRC is valid.
bool has_valid_header(ByteSpan bytes);

// Returns the fault of the frame at `offset`, apart from its payload. `length` is the expected
// length of the payload; if empty, it is set to that in the header.
std::optional<DamageKind> check_frame(ByteSpan file, uint64_t offset,
                                      std::optional<uint64_t>& length);

// Returns whether the CRC of a payload is the one at `footer`.
bool crc_matches(uint32_t crc, const uint8_t* footer);

// Returns the fault, if any, of the record at `offset` with an expected payload of `length` bytes.
// Checks both CRCs.
std::optional<DamageKind> check_record(ByteSpan file, uint64_t offset, uint64_t length);

}  // namespace datum
