// Bindings of framing.h and index.h.
#include "../framing.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <tuple>

#include "../index.h"
#include "bindings.h"

namespace datum::python {
namespace {

constexpr const char* kDamageNames[] = {
    "torn header",      "torn payload", "length checksum", "payload checksum",
    "oversized record", "lost",         "malformed",
};

constexpr const char* kIndexFaults[] = {
    "",
    "the file is too short to be an index",
    "the file does not start with DATUMIDX",
    "the version of the index is not known",
    "the header does not match its checksum",
    "the number of records does not match the size of the file",
    "the offsets do not match their checksum",
    "the offsets are not those of consecutive records",
};

using DamageTuple = std::tuple<uint64_t, uint64_t, uint64_t, std::string>;

DamageTuple as_tuple(const Damage& damage) {
  return {damage.offset, damage.end, damage.record, name_of(damage.kind)};
}

Recovery recovery_named(const std::string& name) {
  if (name == "strict") return Recovery::kStrict;
  if (name == "tail") return Recovery::kTail;
  if (name == "skip") return Recovery::kSkip;
  throw std::invalid_argument("no recovery mode " + name);
}

void make_scanner(Scanner* scanner, const std::string& recovery, bool check_lengths,
                  bool check_payloads, uint64_t max_record_bytes) {
  new (scanner) Scanner(
      ScanOptions{recovery_named(recovery), check_lengths, check_payloads, max_record_bytes});
}

// When a file is read in order, reads ahead, and releases the pages behind.
void move_window(const MappedFile& file, uint64_t from, uint64_t to) {
  constexpr uint64_t kWindow = 16 * 1024 * 1024;
  const uint64_t window = to / kWindow;
  if (from != 0 && from / kWindow == window) return;
  file.read_ahead(static_cast<size_t>(to), static_cast<size_t>(2 * kWindow));
  if (window > 1) file.drop_pages(static_cast<size_t>((window - 1) * kWindow));
}

// Returns payload starts within `buffer`, lengths, and numbers of the records found.
nb::tuple scan(Scanner& scanner, nb::handle object, uint64_t skip, bool last, size_t max_records) {
  const BufferView buffer(object);
  if (skip > buffer.bytes().size()) throw std::out_of_range("`skip` is past the buffer");
  std::vector<RecordRef> records;
  const uint64_t origin = scanner.position() - skip;  // stream offset of the buffer's first byte
  {
    nb::gil_scoped_release release;
    scanner.scan(buffer.bytes().subspan(skip), last, max_records, records);
    for (RecordRef& record : records) record.offset += kHeaderBytes - origin;
  }
  return nb::make_tuple(copy_to_array(records, &RecordRef::offset),
                        copy_to_array(records, &RecordRef::length),
                        copy_to_array(records, &RecordRef::number));
}

// The same for a file: the buffer, a copy, and its start in the file come first. With `max_bytes` 0
// only the positions are kept, relative to the start of the file.
nb::tuple scan_file(Scanner& scanner, const MappedFile& file, size_t max_records,
                    uint64_t max_bytes) {
  const bool copies = max_bytes > 0;
  CopiedRecords found;
  {
    nb::gil_scoped_release release;
    guard_mapped_files();
    const uint64_t start = scanner.position();
    if (copies) {
      scan_copy(file.bytes(), scanner, max_records, max_bytes, found);
    } else {
      scanner.scan(file.bytes().subspan(start), true, max_records, found.records);
    }
    move_window(file, start, scanner.position());
    for (RecordRef& record : found.records) record.offset += kHeaderBytes - found.base;
  }
  refuse_changed(file);
  const nb::object bytes =
      copies ? to_array(Cell::kUint8, std::move(found.bytes)) : nb::object(nb::none());
  return nb::make_tuple(bytes, found.base, copy_to_array(found.records, &RecordRef::offset),
                        copy_to_array(found.records, &RecordRef::length),
                        copy_to_array(found.records, &RecordRef::number));
}

std::vector<DamageTuple> take_damage(Scanner& scanner) {
  std::vector<DamageTuple> list;
  for (const Damage& damage : scanner.take_damage()) list.push_back(as_tuple(damage));
  return list;
}

std::optional<DamageTuple> fatal_damage(const Scanner& scanner) {
  if (!scanner.fatal()) return std::nullopt;
  return as_tuple(*scanner.fatal());
}

// Returns the first damaged record at `offsets`, and its damage; or None.
std::optional<std::tuple<size_t, std::string>> first_damage(nb::handle object,
                                                            const Int64Input& offsets,
                                                            const Int64Input& lengths) {
  if (offsets.shape(0) != lengths.shape(0)) throw std::invalid_argument("one length an offset");
  const BufferView buffer(object);
  std::optional<DamageKind> kind;
  size_t i = 0;
  {
    nb::gil_scoped_release release;
    for (; i < offsets.shape(0) && !kind; ++i) {
      kind = check_record(buffer.bytes(), static_cast<uint64_t>(offsets.data()[i]),
                          static_cast<uint64_t>(lengths.data()[i]));
    }
  }
  if (!kind) return std::nullopt;
  return std::tuple{i - 1, std::string(name_of(*kind))};
}

// Returns the offsets, the stream's size and the CRC of the shard; the fault says what is wrong.
nb::tuple load_index(nb::handle object) {
  const BufferView buffer(object);
  IndexView view;
  const IndexFault fault = read_index(buffer.bytes(), view);
  if (fault != IndexFault::kNone) {
    raise_fault(nb::make_tuple(describe(fault)));
  }
  Buffer offsets;
  if (view.records > 0) {
    std::memcpy(offsets.extend(8 * static_cast<size_t>(view.records)), view.table,
                8 * static_cast<size_t>(view.records));
  }
  return nb::make_tuple(to_array(Cell::kInt64, std::move(offsets)), view.stream_bytes,
                        view.shard_crc);
}

nb::bytes dump_index(const Int64Input& offsets, uint64_t stream_bytes, uint32_t shard_crc) {
  const auto* table = reinterpret_cast<const uint8_t*>(offsets.data());
  if (!offsets_are_sound(table, offsets.shape(0), stream_bytes)) {
    throw std::invalid_argument(describe(IndexFault::kOrder));
  }
  const std::vector<uint8_t> file =
      write_index({reinterpret_cast<const uint64_t*>(offsets.data()), offsets.shape(0)},
                  stream_bytes, shard_crc);
  return nb::bytes(reinterpret_cast<const char*>(file.data()), file.size());
}

}  // namespace

const char* name_of(DamageKind kind) { return kDamageNames[static_cast<size_t>(kind)]; }
const char* describe(IndexFault fault) { return kIndexFaults[static_cast<size_t>(fault)]; }

void bind_framing(nb::module_& module) {
  nb::class_<Scanner>(module, "Scanner")
      .def("__init__", make_scanner, nb::arg("recovery"), nb::arg("check_lengths"),
           nb::arg("check_payloads"), nb::arg("max_record_bytes"))
      .def("scan", scan, nb::arg("buffer"), nb::arg("skip"), nb::arg("last"),
           nb::arg("max_records"))
      .def("scan_file", scan_file, nb::arg("file"), nb::arg("max_records"), nb::arg("max_bytes"))
      .def_prop_ro("position", &Scanner::position)
      .def_prop_ro("records_seen", &Scanner::records_seen)
      .def_prop_ro("unread_from", &Scanner::unread_from)
      .def_prop_ro("bytes_wanted", &Scanner::bytes_wanted)
      .def_prop_ro("fatal", fatal_damage)
      .def("take_damage", take_damage);
  module.def(
      "has_valid_header",
      [](nb::handle object) { return has_valid_header(BufferView(object).bytes()); },
      nb::arg("data"));
  module.def("first_damage", first_damage, nb::arg("buffer"), nb::arg("offsets"),
             nb::arg("lengths"));
  module.def("load_index", load_index, nb::arg("data"));
  module.def("dump_index", dump_index, nb::arg("offsets"), nb::arg("stream_bytes"),
             nb::arg("shard_crc32c") = 0);
}

}  // namespace datum::python
