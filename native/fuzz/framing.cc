// Fuzzes the scanner: every byte is accounted for, and neither the size of the pieces nor copying
// changes the result.
#include "framing.h"

#include <optional>

#include "checks.h"

using namespace datum;
using datum::fuzz::Input;
using datum::fuzz::require;

namespace {

struct Result {
  std::vector<RecordRef> records;
  std::vector<Damage> damage;
  std::optional<Damage> fatal;
  uint64_t position = 0;
  uint64_t records_seen = 0;
};

// Adds the result of a scan to those before.
void collect(Scanner& scanner, Result& result) {
  for (const Damage& damage : scanner.take_damage()) result.damage.push_back(damage);
  require(scanner.take_damage().empty(), "damage is handed out once");
  result.fatal = scanner.fatal();
  result.position = scanner.position();
  result.records_seen = scanner.records_seen();
  require(scanner.unread_from() <= scanner.position(), "what is searched was shown");
}

Result scan_whole(ByteSpan file, const ScanOptions& options) {
  Scanner scanner(options);
  Result result;
  scanner.scan(file, true, SIZE_MAX, result.records);
  collect(scanner, result);
  return result;
}

// Passes ever more of the file to the scanner, like a reader of a compressed stream.
Result scan_pieces(ByteSpan file, const ScanOptions& options, Input sizes) {
  Scanner scanner(options);
  Result result;
  std::vector<RecordRef>& records = result.records;
  size_t shown = 0;
  for (uint8_t size = sizes.byte(); !scanner.fatal(); size = sizes.byte()) {
    const bool last = shown == file.size();
    const size_t max_records = 1 + size % 3;
    const auto start = static_cast<size_t>(scanner.position());
    const std::vector<uint8_t> piece = fuzz::exact_copy(file.subspan(start, shown - start));
    const size_t before = records.size();
    scanner.scan(piece, last, max_records, records);
    collect(scanner, result);
    require(records.size() - before <= max_records, "no more records than asked for");
    require(scanner.position() <= shown, "the scanner stays within what it was shown");
    if (records.size() - before == max_records) continue;
    if (last) break;
    require(scanner.fatal() || scanner.bytes_wanted() > shown - scanner.position(),
            "the scanner stops only for want of bytes");
    shown = size == 0 ? file.size() : std::min<size_t>(file.size(), shown + size);
  }
  return result;
}

// Copies what is found, like a reader of a file.
Result scan_copies(ByteSpan file, const ScanOptions& options, Input sizes) {
  Scanner scanner(options);
  Result result;
  size_t found = 1;
  while (found > 0 && !scanner.fatal()) {
    const uint8_t size = sizes.byte();
    const size_t max_records = 1 + size % 3;
    const uint64_t max_bytes = size % 2 == 0 ? UINT64_MAX : 1 + size;
    CopiedRecords copied;
    scan_copy(file, scanner, max_records, max_bytes, copied);
    collect(scanner, result);
    found = copied.records.size();
    require(found <= max_records, "no more records than asked for");
    for (const RecordRef& record : copied.records) {
      const auto at = static_cast<size_t>(record.offset - copied.base);
      const auto bytes = static_cast<size_t>(record.length) + kFrameBytes;
      require(at + bytes <= copied.bytes.size(), "each record lies in the copy");
      require(std::memcmp(copied.bytes.data() + at, file.data() + record.offset, bytes) == 0,
              "a copy is what was copied");
      result.records.push_back(record);
    }
  }
  return result;
}

bool same_damage(const Damage& a, const Damage& b) {
  return a.offset == b.offset && a.end == b.end && a.record == b.record && a.kind == b.kind;
}

void require_same(const Result& a, const Result& b) {
  const auto same_record = [](const RecordRef& x, const RecordRef& y) {
    return x.offset == y.offset && x.length == y.length && x.number == y.number;
  };
  require(std::equal(a.records.begin(), a.records.end(), b.records.begin(), b.records.end(),
                     same_record),
          "pieces give the same records");
  require(
      std::equal(a.damage.begin(), a.damage.end(), b.damage.begin(), b.damage.end(), same_damage),
      "pieces give the same damage");
  require(a.fatal.has_value() == b.fatal.has_value(), "pieces end alike");
  require(!a.fatal || same_damage(*a.fatal, *b.fatal), "pieces give the same fatal damage");
  require(a.position == b.position && a.records_seen == b.records_seen, "pieces end in one place");
}

// Records and damage follow one another without gaps, and are numbered in that order.
void require_complete(ByteSpan file, const ScanOptions& options, const Result& result) {
  uint64_t at = 0;
  uint64_t number = 0;
  auto damage = result.damage.begin();
  const auto pass_damage = [&] {
    for (; damage != result.damage.end() && damage->record == number; ++damage, ++number) {
      require(damage->offset == at && damage->end > at, "damage follows what was before it");
      at = damage->end;
    }
  };
  for (const RecordRef& record : result.records) {
    pass_damage();
    require(record.offset == at && record.number == number++, "records leave no gap");
    require(record.length <= options.max_record_bytes, "no record is larger than allowed");
    const auto wrong = check_record(file, record.offset, record.length);
    require(!options.check_payloads || !options.check_lengths || !wrong, "every record is sound");
    at += record.length + kFrameBytes;
  }
  pass_damage();
  require(damage == result.damage.end() && number == result.records_seen, "all is counted");
  require(at == result.position, "the scanner stands after what it found");
  if (result.fatal) {
    require(result.fatal->offset == at && result.fatal->record == number && at < file.size() &&
                result.fatal->end > at && result.fatal->end <= file.size(),
            "fatal damage is where the scan stopped");
    require(options.recovery != Recovery::kSkip, "skipping never stops");
  } else {
    require(at == file.size(), "a scan without fatal damage reaches the end");
  }
  require(options.recovery != Recovery::kStrict || result.damage.empty(), "strict drops nothing");
  require(options.recovery != Recovery::kTail || result.damage.size() <= 1, "tail drops one end");
}

void require_prefix(const Result& some, const Result& all) {
  require(some.records.size() <= all.records.size(), "skipping finds no fewer records");
  for (size_t i = 0; i < some.records.size(); ++i) {
    require(some.records[i].offset == all.records[i].offset, "skipping starts like the others");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const uint8_t flags = input.byte();
  const ByteSpan sizes = input.take(flags % 16);
  const std::vector<uint8_t> file = fuzz::exact_copy(input.rest());

  ScanOptions options;
  options.check_lengths = (flags & 16) == 0;
  options.check_payloads = (flags & 32) == 0;
  options.max_record_bytes = (flags & 64) ? 40 : UINT64_MAX;
  Result results[3];
  for (const Recovery recovery : {Recovery::kStrict, Recovery::kTail, Recovery::kSkip}) {
    options.recovery = recovery;
    Result& whole = results[static_cast<size_t>(recovery)];
    whole = scan_whole(file, options);
    require_complete(file, options, whole);
    require_same(whole, scan_pieces(file, options, Input(sizes.data(), sizes.size())));
    require_same(whole, scan_copies(file, options, Input(sizes.data(), sizes.size())));
  }
  require_prefix(results[0], results[1]);
  require_prefix(results[1], results[2]);
  check_record(file, flags, file.size());
  check_record(file, UINT64_MAX - flags, UINT64_MAX);
  return 0;
}

// Corrects the checksums of some frames, so that mutations get past them.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  const size_t skip = size == 0 ? 0 : 1 + data[0] % 16u;
  for (size_t at = skip; at + kFrameBytes <= size && seed % 4 != 0; seed /= 2) {
    uint64_t length;
    std::memcpy(&length, data + at, 8);
    const size_t room = size - at - kFrameBytes;
    if (length > room && seed % 8 < 6) length %= room + 1;
    write_frame_header(data + at, length);
    if (length > room) break;
    if (seed % 8 < 7) {
      uint8_t* payload = data + at + kHeaderBytes;
      write_frame_footer(payload + length, payload, static_cast<size_t>(length));
    }
    at += kFrameBytes + static_cast<size_t>(length);
  }
  return size;
}
