// Rows, dicts of Python values, into sources that encode.h can write.
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "collector.h"

namespace datum::python {
namespace {

constexpr const char* kRowErrors[] = {"", "missing", "type", "range", "shape", "unknown key"};

[[noreturn]] void raise_row_fault(RowError error, size_t row, nb::handle name) {
  raise_fault(nb::make_tuple(kRowErrors[static_cast<size_t>(error)], row, name));
}

// A key of the row that no column has, and that is not among `others`.
nb::object unknown_key(PyObject* row, const std::vector<RowColumn>& columns, nb::handle others) {
  PyObject* key;
  PyObject* value;
  Py_ssize_t position = 0;
  while (PyDict_Next(row, &position, &key, &value)) {
    bool is_known = PySequence_Contains(others.ptr(), key) == 1;
    for (const RowColumn& column : columns) {
      is_known = is_known || PyObject_RichCompareBool(key, column.name.ptr(), Py_EQ) == 1;
    }
    if (!is_known) return nb::borrow(key);
  }
  return nb::none();
}

// A Source for each column; the fault is (error, row, name). `others` are keys handled elsewhere.
nb::list collect_rows(nb::list rows, const std::vector<RowColumn>& columns, nb::handle others) {
  std::vector<Collector> collectors;
  collectors.reserve(columns.size());
  for (const RowColumn& column : columns) collectors.emplace_back(column);
  const bool has_others = PyObject_IsTrue(others.ptr()) == 1;
  for (size_t i = 0; i < rows.size(); ++i) {
    PyObject* row = PyList_GET_ITEM(rows.ptr(), static_cast<Py_ssize_t>(i));
    const nb::object held_row = nb::borrow(row);
    if (!PyDict_Check(row)) raise_row_fault(RowError::kType, i, nb::none());
    Py_ssize_t found = 0;
    for (size_t c = 0; c < columns.size(); ++c) {
      PyObject* value = PyDict_GetItemWithError(row, columns[c].name.ptr());
      if (value == nullptr && PyErr_Occurred()) throw nb::python_error();
      found += value != nullptr;
      const nb::object held_value = nb::borrow(value);
      const RowError error = collectors[c].add(value);
      if (error != RowError::kNone) raise_row_fault(error, i, columns[c].name);
    }
    if (has_others || found != PyDict_Size(row)) {
      const nb::object stray = unknown_key(row, columns, others);
      if (!stray.is_none()) raise_row_fault(RowError::kUnknownKey, i, stray);
    }
  }
  nb::list sources;
  for (Collector& collector : collectors) sources.append(nb::cast(collector.finish()));
  return sources;
}

void make_row_column(RowColumn* self, nb::str name, nb::bytes key, Kind kind, Cell cell,
                     bool is_text, bool is_optional, std::vector<int64_t> shape) {
  new (self) RowColumn{name, key, kind, cell, is_text, is_optional, std::move(shape)};
}

}  // namespace

void bind_rows(nb::module_& module) {
  nb::class_<RowColumn>(module, "RowColumn")
      .def("__init__", make_row_column, nb::arg("name"), nb::arg("key"), nb::arg("kind"),
           nb::arg("cell"), nb::arg("is_text"), nb::arg("is_optional"), nb::arg("shape"));
  module.def("collect_rows", collect_rows, nb::arg("rows"), nb::arg("columns"), nb::arg("others"));
}

}  // namespace datum::python
