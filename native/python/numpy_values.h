// NumPy's arrays and scalars, accessed through its C interface.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../elements.h"
#include "bindings.h"

namespace datum::python {

// Items in row-major order, aligned, in native byte order.
struct ArrayView {
  Element element;
  const void* items;
  size_t count;
  const Py_ssize_t* shape;
  size_t rank;
};

void import_numpy_values();

// Returns whether `value` is an array of NumPy itself, not of a subclass.
bool is_plain_array(PyObject* value);

// Whether the items of a plain array are strings or Python objects.
bool has_objects(PyObject* array);

// Returns the array itself, or a copy in row-major order; null if its items are not numbers.
nb::object to_viewable(PyObject* array);

// Views the result of `to_viewable`.
ArrayView view_array(PyObject* array);

// Views a NumPy scalar as an array of rank 0, valid as long as the scalar.
bool view_scalar(PyObject* value, ArrayView& view);

// Returns whether `value` is a byte string, not of a subclass.
bool is_plain_bytes(PyObject* value);

// Converts an array to nested lists.
nb::object to_list(PyObject* array);

}  // namespace datum::python
