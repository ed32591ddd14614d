// Bindings of mapped_file.h.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/tuple.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "../crc32c.h"
#include "../gather.h"
#include "../mapped_file.h"
#include "bindings.h"

namespace datum::python {
namespace {

using Path = std::filesystem::path;

void open_file(MappedFile* self, const Path& path) {
  new (self) MappedFile;
  int error;
  {
    nb::gil_scoped_release release;
    error = self->open(path);
  }
  if (error == 0) return;
  self->~MappedFile();
  raise_system_error(error, path);
}

VersionTuple to_tuple(const FileVersion& version) {
  return {version.device,      version.inode,      version.bytes,
          version.modified_ns, version.changed_ns, version.rights};
}

VersionTuple version_of(const Path& path) {
  FileVersion version;
  if (const int error = find_version(path, version)) raise_system_error(error, path);
  return to_tuple(version);
}

// Calls `use` with some bytes of the file, and raises a fault if the file has changed.
template <typename Use>
void use_bytes(const MappedFile& file, uint64_t start, uint64_t size, Use use) {
  const ByteSpan bytes = file.bytes();
  if (start > bytes.size() || size > bytes.size() - start) {
    throw std::out_of_range("expected bytes within the file");
  }
  {
    nb::gil_scoped_release release;
    guard_mapped_files();
    use(bytes.subspan(static_cast<size_t>(start), static_cast<size_t>(size)));
  }
  refuse_changed(file);
}

nb::object read_bytes(const MappedFile& file, uint64_t start, uint64_t size) {
  Buffer out;
  use_bytes(file, start, size, [&](ByteSpan bytes) {
    uint8_t* copy = out.extend(bytes.size());
    if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  });
  return to_array(Cell::kUint8, std::move(out));
}

uint32_t checksum(const MappedFile& file, uint64_t start, uint64_t size, uint32_t crc) {
  use_bytes(file, start, size,
            [&](ByteSpan bytes) { crc = crc32c_extend(crc, bytes.data(), bytes.size()); });
  return crc;
}

nb::object gather_bytes(const MappedFile& file, const Int64Input& starts, const Int64Input& sizes,
                        size_t threads) {
  if (starts.shape(0) != sizes.shape(0)) {
    throw std::invalid_argument("expected one size for each start");
  }
  Buffer out;
  use_bytes(file, 0, file.bytes().size(),
            [&](ByteSpan bytes) { gather(bytes, as_span(starts), as_span(sizes), threads, out); });
  return to_array(Cell::kUint8, std::move(out));
}

}  // namespace

const char* name_of(FileState state) {
  constexpr const char* kNames[] = {"same",      "cut",       "rewritten",
                                    "rewritten", "rewritten", "unreadable"};
  return kNames[static_cast<size_t>(state)];
}

void raise_system_error(int number, const Path& path) {
  errno = number;
  PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
  throw nb::python_error();
}

void refuse_changed(const MappedFile& file) {
  uint64_t bytes = 0;
  const FileState state = file.state(bytes);
  if (state == FileState::kSame || state == FileState::kGrown) return;
  raise_fault(nb::make_tuple("changed", name_of(state), bytes));
}

void bind_files(nb::module_& module) {
  nb::class_<MappedFile>(module, "MappedFile")
      .def("__init__", open_file, nb::arg("path"))
      .def("__len__", [](const MappedFile& file) { return file.bytes().size(); })
      .def_prop_ro("version", [](const MappedFile& file) { return to_tuple(file.version()); })
      .def("expect", &MappedFile::expect, nb::arg("crc32c"))
      .def("read", read_bytes, nb::arg("start"), nb::arg("size"))
      .def("crc32c", checksum, nb::arg("start"), nb::arg("size"), nb::arg("crc") = 0)
      .def("gather", gather_bytes, nb::arg("starts"), nb::arg("sizes"), nb::arg("threads"))
      .def("check", &refuse_changed);
  module.def("version_of", version_of, nb::arg("path"));
}

}  // namespace datum::python
