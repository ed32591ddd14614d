// Bindings of gather.h.
#include <stdexcept>

#include "../gather.h"
#include "bindings.h"

namespace datum::python {
namespace {

nb::object gather_pieces(nb::handle data, const Int64Input& starts, const Int64Input& sizes,
                         size_t threads) {
  if (starts.shape(0) != sizes.shape(0)) {
    throw std::invalid_argument("expected one size for each start");
  }
  const BufferView buffer(data);
  Buffer out;
  {
    nb::gil_scoped_release release;
    gather(buffer.bytes(), as_span(starts), as_span(sizes), threads, out);
  }
  return to_array(Cell::kUint8, std::move(out));
}

nb::object hash_keys(nb::list keys) {
  Buffer hashes;
  auto* out = reinterpret_cast<uint64_t*>(hashes.extend(keys.size() * sizeof(uint64_t)));
  for (size_t i = 0; i < keys.size(); ++i) {
    PyObject* key = PyList_GET_ITEM(keys.ptr(), static_cast<Py_ssize_t>(i));
    Py_ssize_t size;
    const char* text = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &size) : nullptr;
    if (text == nullptr) {
      if (PyErr_Occurred()) throw nb::python_error();
      throw nb::type_error("expected keys that are text");
    }
    out[i] = hash_key({reinterpret_cast<const uint8_t*>(text), static_cast<size_t>(size)});
  }
  return to_array(Cell::kUint64, std::move(hashes));
}

}  // namespace

void bind_gathering(nb::module_& module) {
  module.def("gather", gather_pieces, nb::arg("data"), nb::arg("starts"), nb::arg("sizes"),
             nb::arg("threads"));
  module.def("hash_keys", hash_keys, nb::arg("keys"));
}

}  // namespace datum::python
