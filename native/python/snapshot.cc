// Values as they are now, out of reach of whoever goes on to change them.
#include "bindings.h"

namespace datum::python {
namespace {

bool is_unchangeable(PyObject* value) {
  return value == Py_None || PyFloat_CheckExact(value) || PyLong_CheckExact(value) ||
         PyUnicode_CheckExact(value) || PyBool_Check(value) || PyBytes_CheckExact(value);
}

// Throws, instead of running out of stack, on what holds itself.
class Level {
 public:
  Level() {
    if (Py_EnterRecursiveCall(" while a record is copied")) throw nb::python_error();
  }
  ~Level() { Py_LeaveRecursiveCall(); }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
};

// Containers of Python's own are copied here, all else that can change by `copy_other`.
nb::object snapshot(nb::handle value, nb::handle copy_other);

nb::object copy_dict(nb::handle value, nb::handle copy_other) {
  const nb::object held = nb::borrow(value);
  nb::object copied = nb::steal(PyDict_Copy(value.ptr()));
  if (!copied.is_valid()) throw nb::python_error();
  PyObject* key;
  PyObject* item;
  Py_ssize_t position = 0;
  bool is_flat = true;
  // Setting the value of a key that is there leaves the places of all as they are.
  while (PyDict_Next(copied.ptr(), &position, &key, &item)) {
    if (is_unchangeable(item)) continue;
    is_flat = is_flat && PyList_CheckExact(item);
    const nb::object held_key = nb::borrow(key);
    const nb::object held_item = nb::borrow(item);
    const nb::object made = snapshot(held_item, copy_other);
    is_flat = is_flat && PyObject_GC_IsTracked(made.ptr()) == 0;
    if (PyDict_SetItem(copied.ptr(), key, made.ptr()) != 0) throw nb::python_error();
  }
  if (is_flat && PyObject_GC_IsTracked(copied.ptr()) != 0) PyObject_GC_UnTrack(copied.ptr());
  return copied;
}

nb::object copy_list(nb::handle value, nb::handle copy_other) {
  nb::object copied = nb::steal(PyList_GetSlice(value.ptr(), 0, PY_SSIZE_T_MAX));
  if (!copied.is_valid()) throw nb::python_error();
  bool is_flat = true;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(copied.ptr()); ++i) {
    const nb::object item = nb::borrow(PyList_GET_ITEM(copied.ptr(), i));
    if (is_unchangeable(item.ptr())) continue;
    is_flat = false;
    PyList_SetItem(copied.ptr(), i, snapshot(item, copy_other).release().ptr());
  }
  // What can hold nothing that holds it need not be gone through, again and again, for garbage.
  if (is_flat) PyObject_GC_UnTrack(copied.ptr());
  return copied;
}

nb::object copy_tuple(nb::handle value, nb::handle copy_other) {
  const Py_ssize_t size = PyTuple_GET_SIZE(value.ptr());
  nb::object copied = nb::steal(PyTuple_New(size));
  if (!copied.is_valid()) throw nb::python_error();
  for (Py_ssize_t i = 0; i < size; ++i) {
    nb::object item = snapshot(PyTuple_GET_ITEM(value.ptr(), i), copy_other);
    PyTuple_SET_ITEM(copied.ptr(), i, item.release().ptr());
  }
  return copied;
}

nb::object snapshot(nb::handle value, nb::handle copy_other) {
  if (is_unchangeable(value.ptr())) return nb::borrow(value);
  const Level level;
  if (PyDict_CheckExact(value.ptr())) return copy_dict(value, copy_other);
  if (PyList_CheckExact(value.ptr())) return copy_list(value, copy_other);
  if (PyTuple_CheckExact(value.ptr())) return copy_tuple(value, copy_other);
  return copy_other(value);
}

}  // namespace

void bind_snapshot(nb::module_& module) {
  module.def("snapshot", snapshot, nb::arg("value").none(), nb::arg("copy_other"));
}

}  // namespace datum::python
