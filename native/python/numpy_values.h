// NumPy's arrays and scalars, seen through its own C interface.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../elements.h"
#include "bindings.h"

namespace datum::python {

// Items in row-major order, aligned, in the byte order of this machine.
struct ArrayView {
  Element element;
  const void* items;
  size_t count;
  const Py_ssize_t* shape;
  size_t rank;
};

void import_numpy_values();

// Whether `value` is an array of NumPy itself, and none of a class that may mean more by it.
bool is_plain_array(PyObject* value);

// Whether the items of a plain array are strings or Python objects.
bool has_objects(PyObject* array);

// The array itself, or a copy in row-major order; null if its items are no numbers we know.
nb::object to_viewable(PyObject* array);

// Of what `to_viewable` gave.
ArrayView view_array(PyObject* array);

// A scalar of NumPy as an array of rank 0, for as long as it lives.
bool view_scalar(PyObject* value, ArrayView& view);

// Whether `value` is a byte string, and of no class that may mean more by it.
bool is_plain_bytes(PyObject* value);

// Lists of the items of an array.
nb::object to_list(PyObject* array);

}  // namespace datum::python
