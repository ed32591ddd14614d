// Memory of the core as NumPy arrays, by NumPy's own C interface.
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include "bindings.h"

namespace datum::python {
namespace {

int type_number(Cell cell) {
  switch (cell) {
    case Cell::kBool:
      return NPY_BOOL;
    case Cell::kInt8:
      return NPY_INT8;
    case Cell::kInt16:
      return NPY_INT16;
    case Cell::kInt32:
      return NPY_INT32;
    case Cell::kUint16:
      return NPY_UINT16;
    case Cell::kUint32:
      return NPY_UINT32;
    case Cell::kUint64:
      return NPY_UINT64;
    case Cell::kFloat32:
      return NPY_FLOAT32;
    case Cell::kUint8:
    case Cell::kRaw:
      return NPY_UINT8;
    case Cell::kInt64:
    case Cell::kSlice:
      break;
  }
  return NPY_INT64;
}

size_t item_bytes(Cell cell) { return cell == Cell::kSlice ? 8 : cell_bytes(cell); }

nb::object make_view(Cell cell, uint8_t* memory, size_t bytes, nb::handle owner) {
  npy_intp count = static_cast<npy_intp>(bytes / item_bytes(cell));
  nb::object array = nb::steal(PyArray_SimpleNewFromData(1, &count, type_number(cell), memory));
  if (!array.is_valid()) throw nb::python_error();
  auto* numpy_array = reinterpret_cast<PyArrayObject*>(array.ptr());
  if (PyArray_SetBaseObject(numpy_array, owner.inc_ref().ptr()) < 0) throw nb::python_error();
  return array;
}

}  // namespace

void import_numpy() {
  if (_import_array() < 0) throw nb::python_error();
}

nb::object to_array(Cell cell, Buffer&& buffer) {
  const size_t bytes = buffer.size();
  if (buffer.data() == nullptr) buffer.reserve(1);
  uint8_t* memory = buffer.release();
  const nb::capsule owner(memory, [](void* data) noexcept { release_block(data); });
  return make_view(cell, memory, bytes, owner);
}

SmallArrays::SmallArrays() : buffers_(new std::vector<Buffer>) {
  owner_ = nb::capsule(
      buffers_, [](void* buffers) noexcept { delete static_cast<std::vector<Buffer>*>(buffers); });
}

nb::object SmallArrays::add(Cell cell, Buffer&& buffer) {
  Buffer& kept = buffers_->emplace_back(std::move(buffer));
  if (kept.data() == nullptr) kept.reserve(1);
  return make_view(cell, kept.data(), kept.size(), owner_);
}

void bind_arrays(nb::module_& module) {
  module.def(
      "allocate",
      [](size_t bytes) {
        Buffer buffer;
        buffer.extend(bytes);
        return to_array(Cell::kUint8, std::move(buffer));
      },
      nb::arg("bytes"));
}

}  // namespace datum::python
