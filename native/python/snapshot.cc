// Snapshots of values, which later changes by others do not affect.
#include <exception>
#include <utility>

#include "bindings.h"

namespace datum::python {
namespace {

bool is_unchangeable(PyObject* value) {
  return value == Py_None || PyFloat_CheckExact(value) || PyLong_CheckExact(value) ||
         PyUnicode_CheckExact(value) || PyBool_Check(value) || PyBytes_CheckExact(value);
}

// Throws, instead of overflowing the stack, on containers that contain themselves.
class Level {
 public:
  Level() {
    if (Py_EnterRecursiveCall(" while a record is copied")) throw nb::python_error();
  }
  ~Level() { Py_LeaveRecursiveCall(); }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
};

// Python's own containers are copied here, other mutable objects by `copy_other`. Objects that
// nobody else refers to (`is_ours`) cannot be changed by others: they are used, not copied.
nb::object snapshot(nb::object value, bool is_ours, nb::handle copy_other);

nb::object snapshot_item(PyObject* item, bool is_ours, nb::handle copy_other) {
  // The container refers to it; so `is_ours` if that is the only reference.
  const bool is_item_ours = is_ours && Py_REFCNT(item) == 1;
  return snapshot(nb::borrow(item), is_item_ours, copy_other);
}

// Containers that cannot be part of a cycle need not be visited by the garbage collector.
void untrack(nb::handle container) {
  if (PyObject_GC_IsTracked(container.ptr()) != 0) PyObject_GC_UnTrack(container.ptr());
}

nb::object copy_dict(nb::object value, bool is_ours, nb::handle copy_other) {
  nb::object copied = is_ours ? value : nb::steal(PyDict_Copy(value.ptr()));
  if (!copied.is_valid()) throw nb::python_error();
  PyObject* key;
  PyObject* item;
  Py_ssize_t position = 0;
  bool is_flat = true;
  // Setting the value of an existing key does not move the others.
  while (PyDict_Next(copied.ptr(), &position, &key, &item)) {
    if (is_unchangeable(item)) continue;
    const bool is_list = PyList_CheckExact(item);
    const nb::object held_key = nb::borrow(key);
    const nb::object made = snapshot_item(item, is_ours, copy_other);
    is_flat = is_flat && is_list && PyObject_GC_IsTracked(made.ptr()) == 0;
    if (made.ptr() != item && PyDict_SetItem(copied.ptr(), key, made.ptr()) != 0) {
      throw nb::python_error();
    }
  }
  if (is_flat) untrack(copied);
  return copied;
}

nb::object copy_list(nb::object value, bool is_ours, nb::handle copy_other) {
  nb::object copied = is_ours ? value : nb::steal(PyList_GetSlice(value.ptr(), 0, PY_SSIZE_T_MAX));
  if (!copied.is_valid()) throw nb::python_error();
  bool is_flat = true;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(copied.ptr()); ++i) {
    PyObject* item = PyList_GET_ITEM(copied.ptr(), i);
    if (is_unchangeable(item)) continue;
    is_flat = false;
    nb::object made = snapshot_item(item, is_ours, copy_other);
    if (made.ptr() != item) PyList_SetItem(copied.ptr(), i, made.release().ptr());
  }
  if (is_flat) untrack(copied);
  return copied;
}

nb::object copy_tuple(nb::object value, nb::handle copy_other) {
  const Py_ssize_t size = PyTuple_GET_SIZE(value.ptr());
  nb::object copied = nb::steal(PyTuple_New(size));
  if (!copied.is_valid()) throw nb::python_error();
  for (Py_ssize_t i = 0; i < size; ++i) {
    nb::object item = snapshot_item(PyTuple_GET_ITEM(value.ptr(), i), false, copy_other);
    PyTuple_SET_ITEM(copied.ptr(), i, item.release().ptr());
  }
  return copied;
}

nb::object snapshot(nb::object value, bool is_ours, nb::handle copy_other) {
  if (is_unchangeable(value.ptr())) return value;
  const Level level;
  if (PyDict_CheckExact(value.ptr())) return copy_dict(std::move(value), is_ours, copy_other);
  if (PyList_CheckExact(value.ptr())) return copy_list(std::move(value), is_ours, copy_other);
  if (PyTuple_CheckExact(value.ptr())) return copy_tuple(std::move(value), copy_other);
  return copy_other(value);
}

nb::object snapshot_value(nb::handle value, nb::handle copy_other) {
  return snapshot(nb::borrow(value), false, copy_other);
}

size_t size_of_other(PyObject* value) {
  if (PyObject_CheckBuffer(value)) {
    Py_buffer view;
    if (PyObject_GetBuffer(value, &view, PyBUF_STRIDED_RO) == 0) {
      const auto size = static_cast<size_t>(view.len);
      PyBuffer_Release(&view);
      return size;
    }
    PyErr_Clear();
  }
  constexpr size_t kPixelBytes = 4;
  try {
    const nb::handle object(value);
    if (nb::hasattr(object, "nbytes")) return nb::cast<size_t>(object.attr("nbytes"));
    if (!nb::hasattr(object, "width") || !nb::hasattr(object, "height")) return 0;
    return nb::cast<size_t>(object.attr("width")) * nb::cast<size_t>(object.attr("height")) *
           kPixelBytes;
  } catch (const std::exception&) {
    return 0;  // an object without a size
  }
}

// The approximate size of a value in bytes.
size_t size_of(PyObject* value) {
  constexpr size_t kObjectBytes = 32;
  if (PyBytes_CheckExact(value)) return kObjectBytes + static_cast<size_t>(Py_SIZE(value));
  if (PyUnicode_CheckExact(value)) {
    return kObjectBytes + static_cast<size_t>(PyUnicode_GET_LENGTH(value));
  }
  if (is_unchangeable(value)) return kObjectBytes;
  const Level level;
  size_t total = kObjectBytes;
  if (PyDict_CheckExact(value)) {
    PyObject* key;
    PyObject* item;
    Py_ssize_t position = 0;
    while (PyDict_Next(value, &position, &key, &item)) total += size_of(item);
  } else if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) {
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
    // The first number represents all: long lists nearly always contain numbers.
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(value, i);
      if (PyFloat_CheckExact(item) || PyLong_CheckExact(item)) {
        total += static_cast<size_t>(count - i) * kObjectBytes;
        break;
      }
      total += size_of(item);
    }
  } else {
    total += size_of_other(value);
  }
  return total;
}

size_t size_of_value(nb::handle value) {
  try {
    return size_of(value.ptr());
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_RecursionError)) throw;
    return 0;  // it contains itself
  }
}

// Appends snapshots of the items of an iterator to a list as they arrive, until there are `limit`
// of them or they take `max_bytes`. Errors of the iterator are raised, with the items before them
// in the list.
void take_items(nb::handle iterator, nb::list items, size_t limit, size_t max_bytes,
                nb::handle copy_other) {
  size_t bytes = 0;
  for (size_t i = 0; i < limit && bytes < max_bytes; ++i) {
    nb::object item = nb::steal(PyIter_Next(iterator.ptr()));
    if (!item.is_valid()) {
      if (PyErr_Occurred()) throw nb::python_error();
      return;
    }
    const bool is_ours = Py_REFCNT(item.ptr()) == 1;
    nb::object kept = item;
    try {
      kept = snapshot(std::move(item), is_ours, copy_other);
    } catch (nb::python_error& error) {
      // It contains itself, which is reported when its values are collected.
      if (!error.matches(PyExc_RecursionError)) throw;
    }
    items.append(kept);
    bytes += size_of_value(kept);
  }
}

}  // namespace

void bind_snapshot(nb::module_& module) {
  module.def("snapshot", snapshot_value, nb::arg("value").none(), nb::arg("copy_other"));
  module.def("size_of", size_of_value, nb::arg("value").none());
  module.def("take_items", take_items, nb::arg("iterator"), nb::arg("items"), nb::arg("limit"),
             nb::arg("max_bytes"), nb::arg("copy_other"));
}

}  // namespace datum::python
