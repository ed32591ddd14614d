// Shared code of the binding files: buffers in, arrays out.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "../columns.h"
#include "../framing.h"
#include "../index.h"
#include "../mapped_file.h"
#include "../record_parser.h"

namespace datum::python {

namespace nb = nanobind;

void import_numpy();
void bind_arrays(nb::module_& module);
void bind_checksums(nb::module_& module);
void bind_files(nb::module_& module);
void bind_framing(nb::module_& module);
void bind_parsing(nb::module_& module);
void bind_encoding(nb::module_& module);
void bind_row_collector(nb::module_& module);
void bind_summaries(nb::module_& module);
void bind_text(nb::module_& module);
void bind_gathering(nb::module_& module);
void bind_images(nb::module_& module);
void bind_snapshot(nb::module_& module);
void bind_loading(nb::module_& module);

// Raises `datum._core.Fault` with these arguments; the Python side makes the message.
[[noreturn]] void raise_fault(nb::tuple arguments);

// Raises it for a record that does not fit its plan.
[[noreturn]] void raise_fault(const Fault& fault);

// The names for Python.
const char* name_of(DamageKind kind);
const char* name_of(FileState state);
const char* describe(IndexFault fault);

// Raises an OSError that names the file.
[[noreturn]] void raise_system_error(int number, const std::filesystem::path& path);

// Raises a fault ("changed", state, bytes) if a file no longer has all the bytes that it had when
// it was opened; additional bytes are harmless.
void refuse_changed(const MappedFile& file);

// The fields of a FileVersion in their order, for Python.
using VersionTuple = std::tuple<uint64_t, uint64_t, uint64_t, int64_t, int64_t, uint64_t>;
inline FileVersion to_version(const VersionTuple& version) {
  const auto& [device, inode, bytes, modified_ns, changed_ns, rights] = version;
  return {device, inode, bytes, modified_ns, changed_ns, rights};
}

// Returns (values, splits, inner splits, present) for each column.
nb::list to_arrays(const Plan& plan, std::vector<Column>&& columns);

// A view of any object with the buffer protocol, held while this exists.
class BufferView {
 public:
  explicit BufferView(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~BufferView() { PyBuffer_Release(&view_); }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;

  ByteSpan bytes() const {
    return {static_cast<const uint8_t*>(view_.buf), static_cast<size_t>(view_.len)};
  }

 private:
  Py_buffer view_;
};

using Int64Input = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
std::span<const T> as_span(
    const nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>& array) {
  return {array.data(), array.shape(0)};
}

// Passes the memory of a buffer to NumPy without copying. Slices become pairs of int64.
nb::object to_array(Cell cell, Buffer&& buffer);

// The same for small buffers: they share one owner, and are freed with the last array.
class SmallArrays {
 public:
  SmallArrays();
  nb::object add(Cell cell, Buffer&& buffer);

 private:
  std::vector<Buffer>* buffers_;
  nb::object owner_;
};

// One member of each item, as int64: offsets and lengths fit, because they are within memory.
template <typename Source, typename Member>
nb::object copy_to_array(const std::vector<Source>& items, Member Source::* member) {
  Buffer buffer;
  auto* out = reinterpret_cast<int64_t*>(buffer.extend(items.size() * sizeof(int64_t)));
  for (size_t i = 0; i < items.size(); ++i) out[i] = static_cast<int64_t>(items[i].*member);
  return to_array(Cell::kInt64, std::move(buffer));
}

}  // namespace datum::python
