// Bindings of png_filter.h.
#include "../png_filter.h"
#include "bindings.h"

namespace datum::python {
namespace {

constexpr size_t kLongWork =
    16384;  // bytes; below this, releasing the lock costs more than it saves

class Writable {
 public:
  explicit Writable(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_CONTIG) != 0) throw nb::python_error();
  }
  ~Writable() { PyBuffer_Release(&view_); }
  Writable(const Writable&) = delete;
  Writable& operator=(const Writable&) = delete;

  uint8_t* data() const { return static_cast<uint8_t*>(view_.buf); }
  size_t size() const { return static_cast<size_t>(view_.len); }

 private:
  Py_buffer view_;
};

bool undo_filters(nb::handle filtered, size_t row_bytes, size_t pixel_bytes, nb::handle out) {
  const BufferView source(filtered);
  const Writable target(out);
  const ByteSpan bytes = source.bytes();
  const size_t rows = row_bytes == 0 ? 0 : target.size() / row_bytes;
  const bool fits = pixel_bytes > 0 && rows > 0 && target.size() % row_bytes == 0 &&
                    bytes.size() == target.size() + rows;
  if (!fits) return false;
  if (bytes.size() < kLongWork) {
    return undo_png_filters(bytes, row_bytes, pixel_bytes, target.data());
  }
  const nb::gil_scoped_release release;
  return undo_png_filters(bytes, row_bytes, pixel_bytes, target.data());
}

}  // namespace

void bind_images(nb::module_& module) {
  module.def("undo_png_filters", undo_filters, nb::arg("filtered"), nb::arg("row_bytes"),
             nb::arg("pixel_bytes"), nb::arg("out"));
}

}  // namespace datum::python
