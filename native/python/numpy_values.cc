#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include "numpy_values.h"

#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace datum::python {
namespace {

PyObject* memmap_type = nullptr;

std::optional<Element> element_of(int type_number) {
  switch (type_number) {
    case NPY_BOOL:
      return Element::kBool;
    case NPY_INT8:
      return Element::kInt8;
    case NPY_INT16:
      return Element::kInt16;
    case NPY_UINT8:
      return Element::kUint8;
    case NPY_UINT16:
      return Element::kUint16;
    case NPY_HALF:
      return Element::kFloat16;
    case NPY_FLOAT:
      return Element::kFloat32;
    case NPY_DOUBLE:
      return Element::kFloat64;
    case NPY_INT:
      return Element::kInt32;
    case NPY_UINT:
      return Element::kUint32;
    case NPY_LONG:
      return sizeof(long) == 8 ? Element::kInt64 : Element::kInt32;
    case NPY_ULONG:
      return sizeof(long) == 8 ? Element::kUint64 : Element::kUint32;
    case NPY_LONGLONG:
      return Element::kInt64;
    case NPY_ULONGLONG:
      return Element::kUint64;
    default:
      return std::nullopt;
  }
}

PyArrayObject* as_array(PyObject* array) { return reinterpret_cast<PyArrayObject*>(array); }

// The offset of the value in a scalar object of each type.
struct ScalarType {
  const PyTypeObject* type;
  Element element;
  size_t offset;
};

std::vector<ScalarType> scalar_types;

}  // namespace

void import_numpy_values() {
  if (_import_array() < 0) throw nb::python_error();
  nb::object memmap = nb::module_::import_("numpy").attr("memmap");
  memmap_type = memmap.release().ptr();
  const auto add = [](const PyTypeObject& type, int number, size_t offset) {
    scalar_types.push_back({&type, *element_of(number), offset});
  };
  scalar_types.clear();
  add(PyDoubleArrType_Type, NPY_DOUBLE, offsetof(PyDoubleScalarObject, obval));
  add(PyLongArrType_Type, NPY_LONG, offsetof(PyLongScalarObject, obval));
  add(PyFloatArrType_Type, NPY_FLOAT, offsetof(PyFloatScalarObject, obval));
  add(PyBoolArrType_Type, NPY_BOOL, offsetof(PyBoolScalarObject, obval));
  add(PyIntArrType_Type, NPY_INT, offsetof(PyIntScalarObject, obval));
  add(PyUByteArrType_Type, NPY_UBYTE, offsetof(PyUByteScalarObject, obval));
  add(PyByteArrType_Type, NPY_BYTE, offsetof(PyByteScalarObject, obval));
  add(PyShortArrType_Type, NPY_SHORT, offsetof(PyShortScalarObject, obval));
  add(PyLongLongArrType_Type, NPY_LONGLONG, offsetof(PyLongLongScalarObject, obval));
  add(PyUShortArrType_Type, NPY_USHORT, offsetof(PyUShortScalarObject, obval));
  add(PyUIntArrType_Type, NPY_UINT, offsetof(PyUIntScalarObject, obval));
  add(PyULongArrType_Type, NPY_ULONG, offsetof(PyULongScalarObject, obval));
  add(PyULongLongArrType_Type, NPY_ULONGLONG, offsetof(PyULongLongScalarObject, obval));
  add(PyHalfArrType_Type, NPY_HALF, offsetof(PyHalfScalarObject, obval));
}

bool is_plain_array(PyObject* value) {
  return PyArray_CheckExact(value) || reinterpret_cast<PyObject*>(Py_TYPE(value)) == memmap_type;
}

bool has_objects(PyObject* array) {
  const int type_number = PyArray_TYPE(as_array(array));
  return type_number == NPY_OBJECT || type_number == NPY_STRING || type_number == NPY_UNICODE;
}

nb::object to_viewable(PyObject* array) {
  PyArrayObject* given = as_array(array);
  if (!element_of(PyArray_TYPE(given))) return {};
  if (PyArray_ISCARRAY_RO(given)) return nb::borrow(array);
  PyArray_Descr* native = PyArray_DescrFromType(PyArray_TYPE(given));
  return nb::steal(PyArray_FromArray(given, native, NPY_ARRAY_CARRAY_RO));
}

ArrayView view_array(PyObject* array) {
  static_assert(sizeof(npy_intp) == sizeof(Py_ssize_t));
  PyArrayObject* given = as_array(array);
  return {*element_of(PyArray_TYPE(given)), PyArray_DATA(given),
          static_cast<size_t>(PyArray_SIZE(given)),
          reinterpret_cast<const Py_ssize_t*>(PyArray_DIMS(given)),
          static_cast<size_t>(PyArray_NDIM(given))};
}

bool view_scalar(PyObject* value, ArrayView& view) {
  for (const ScalarType& scalar : scalar_types) {
    if (Py_TYPE(value) != scalar.type) continue;
    view = {scalar.element, reinterpret_cast<const char*>(value) + scalar.offset, 1, nullptr, 0};
    return true;
  }
  return false;
}

bool is_plain_bytes(PyObject* value) {
  return PyBytes_CheckExact(value) || Py_TYPE(value) == &PyStringArrType_Type;
}

nb::object to_list(PyObject* array) { return nb::steal(PyArray_ToList(as_array(array))); }

}  // namespace datum::python
