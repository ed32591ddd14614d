// What the binding files share: buffers in, arrays out.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "../columns.h"

namespace datum::python {

namespace nb = nanobind;

void bind_checksums(nb::module_& module);
void bind_framing(nb::module_& module);
void bind_parsing(nb::module_& module);
void bind_encoding(nb::module_& module);
void bind_rows(nb::module_& module);

// Raises `datum._core.Fault` with these arguments; the Python face makes the message.
[[noreturn]] void raise_fault(nb::tuple arguments);

// A view of any object with the buffer protocol, held for as long as it lives.
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

template <typename T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
using Int64Input = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
std::span<const T> as_span(
    const nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>& array) {
  return {array.data(), array.shape(0)};
}

// Hands the memory of a buffer to NumPy without copying.
template <typename T>
Array<T> to_array(Buffer&& buffer) {
  const size_t count = buffer.size() / sizeof(T);
  uint8_t* data = buffer.release();
  nb::capsule owner(data, [](void* memory) noexcept { Buffer::deallocate(memory); });
  return Array<T>(reinterpret_cast<T*>(data), {count}, owner);
}

// One member of each item, as int64: offsets and lengths fit, for they lie within memory.
template <typename Source, typename Member>
Array<int64_t> copy_to_array(const std::vector<Source>& items, Member Source::* member) {
  Buffer buffer;
  buffer.reserve(Buffer::kAlignment);
  auto* out = reinterpret_cast<int64_t*>(buffer.extend(items.size() * sizeof(int64_t)));
  for (size_t i = 0; i < items.size(); ++i) out[i] = static_cast<int64_t>(items[i].*member);
  return to_array<int64_t>(std::move(buffer));
}

}  // namespace datum::python
