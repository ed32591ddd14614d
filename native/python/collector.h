// The values of one feature over all rows, gathered from Python objects.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "../numbers.h"
#include "source.h"

namespace datum::python {

enum class RowError : uint8_t { kNone, kMissing, kType, kRange, kShape, kUnknownKey };

// What one feature accepts. `shape` is what a value must have; only its first item may be -1.
struct RowColumn {
  nb::str name;
  nb::bytes key;
  Kind kind;
  Cell cell;
  bool is_text;
  bool is_optional;
  std::vector<int64_t> shape;

  bool is_variable() const { return !shape.empty() && shape[0] < 0; }
  size_t unit() const {
    size_t count = 1;
    for (size_t d = is_variable() ? 1 : 0; d < shape.size(); ++d) {
      count *= static_cast<size_t>(shape[d]);
    }
    return count;
  }
};

// Exact for every bit pattern, the payloads of NaNs included.
inline float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t fraction = half & 0x3ff;
  uint32_t bits;
  if (exponent == 0x1f) {
    bits = 0x7f800000 | (fraction << 13);
  } else if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
    bits = std::bit_cast<uint32_t>(static_cast<float>(fraction) * 0x1p-24f);
  } else {
    bits = ((exponent + 127 - 15) << 23) | (fraction << 13);
  }
  return std::bit_cast<float>(sign | bits);
}

// Gathers the values of one feature over all rows.
class Collector {
 public:
  explicit Collector(const RowColumn& column) : wanted_(column) {
    source_ = std::make_unique<Source>();
    source_->column.key.assign(column.key.c_str(), column.key.size());
    source_->column.kind = column.kind;
    source_->column.cell = column.cell;
    source_->column.layout = column.is_variable() ? Layout::kVariable : Layout::kFixed;
    source_->column.unit = column.unit();
    source_->values.reserve(64);
    if (column.is_variable()) source_->splits.push_back(0);
  }

  RowError add(PyObject* value) {
    const bool is_absent = value == nullptr || value == Py_None;
    if (is_absent && !wanted_.is_optional) return RowError::kMissing;
    if (wanted_.is_optional) source_->present.push_back(is_absent ? 0 : 1);
    if (is_absent) {
      if (!wanted_.is_variable()) append_blank_unit();
    } else if (const RowError error = append(value, 0); error != RowError::kNone) {
      return error;
    }
    if (wanted_.is_variable()) {
      const size_t unit = source_->column.unit;
      source_->splits.push_back(static_cast<int64_t>(unit == 0 ? 0 : value_count() / unit));
    }
    return RowError::kNone;
  }

  std::unique_ptr<Source> finish() {
    source_->adopt_own_memory();
    return std::move(source_);
  }

 private:
  size_t value_count() const {
    return wanted_.cell == Cell::kSlice ? source_->strings.size()
                                        : source_->values.size() / cell_bytes(wanted_.cell);
  }

  void append_blank_unit() {
    if (wanted_.cell == Cell::kSlice) {
      source_->strings.resize(source_->strings.size() + source_->column.unit);
    } else {
      const size_t bytes = source_->column.unit * cell_bytes(wanted_.cell);
      if (bytes > 0) std::memset(source_->values.extend(bytes), 0, bytes);
    }
  }

  // Lists and tuples are walked down to `depth` dimensions; arrays must have all that are left.
  RowError append(PyObject* value, size_t depth) {
    if (PyList_Check(value) || PyTuple_Check(value)) return append_sequence(value, depth);
    if (wanted_.kind == Kind::kBytes) {
      if (depth == wanted_.shape.size()) return append_string(value);
      return append_string_array(value, depth);
    }
    if (depth == wanted_.shape.size()) {
      const RowError error = append_number(value);
      if (error != RowError::kType) return error;
    }
    return append_array(value, depth);
  }

  RowError append_sequence(PyObject* value, size_t depth) {
    if (depth == wanted_.shape.size()) return RowError::kShape;
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
    if (wanted_.shape[depth] >= 0 && wanted_.shape[depth] != size) return RowError::kShape;
    const nb::object held_value = nb::borrow(value);
    const bool is_last = depth + 1 == wanted_.shape.size();
    const Py_ssize_t plain = is_last ? append_plain_floats(value, size) : 0;
    for (Py_ssize_t i = plain; i < size; ++i) {
      // Converting runs Python code of the item's own, which may change the list.
      if (i >= PySequence_Fast_GET_SIZE(value)) return RowError::kShape;
      PyObject* item = PySequence_Fast_GET_ITEM(value, i);
      const nb::object held_item = nb::borrow(item);
      const RowError error = append(item, depth + 1);
      if (error != RowError::kNone) return error;
    }
    return RowError::kNone;
  }

  // How many items from the first on are Python's own floats, which run no code: all those taken.
  Py_ssize_t append_plain_floats(PyObject* list, Py_ssize_t size) {
    if (wanted_.cell != Cell::kFloat32) return 0;
    const size_t before = source_->values.size();
    auto* out = reinterpret_cast<float*>(source_->values.extend(4 * static_cast<size_t>(size)));
    Py_ssize_t i = 0;
    for (; i < size; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(list, i);
      if (!PyFloat_CheckExact(item)) break;
      out[i] = static_cast<float>(PyFloat_AS_DOUBLE(item));
      if (std::isinf(out[i])) break;  // perhaps too large: told in the long way
    }
    source_->values.truncate(before + 4 * static_cast<size_t>(i));
    return i;
  }

  RowError append_number(PyObject* value) {
    if (wanted_.cell == Cell::kFloat32) {
      if (PyFloat_Check(value)) return store_float(PyFloat_AS_DOUBLE(value));
      if (!PyLong_Check(value)) return RowError::kType;
      int overflow = 0;
      const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
      return overflow == 0 ? store_exact_float(number) : RowError::kRange;
    }
    if (PyLong_Check(value)) return append_long(value);
    if (!PyIndex_Check(value) || PyObject_CheckBuffer(value) == 0) return RowError::kType;
    PyObject* index = PyNumber_Index(value);  // NumPy's integers
    if (index == nullptr) {
      PyErr_Clear();
      return RowError::kType;
    }
    const RowError error = append_long(index);
    Py_DECREF(index);
    return error;
  }

  RowError append_long(PyObject* value) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) {
      if (number < 0 && wanted_.cell == Cell::kUint64) return RowError::kRange;
      return store_integer(static_cast<uint64_t>(number));
    }
    if (overflow < 0 || wanted_.cell != Cell::kUint64) return RowError::kRange;
    const unsigned long long wide = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) {
      PyErr_Clear();
      return RowError::kRange;
    }
    return store_integer(wide);
  }

  RowError store_integer(uint64_t wire) {
    return with_integer(wanted_.cell, [&](auto zero) {
      using T = decltype(zero);
      return store_number(wire, reinterpret_cast<T*>(source_->values.extend(sizeof(T))))
                 ? RowError::kNone
                 : RowError::kRange;
    });
  }

  RowError store_float(double number) {
    const auto narrow = static_cast<float>(number);
    if (std::isinf(narrow) && !std::isinf(number)) return RowError::kRange;
    std::memcpy(source_->values.extend(sizeof narrow), &narrow, sizeof narrow);
    return RowError::kNone;
  }

  // Integers go into floats only when nothing is lost. Large ones are left to the slower way.
  RowError store_exact_float(int64_t number) {
    constexpr int64_t kAllExact = 1 << 24;
    if (number < -kAllExact || number > kAllExact) return RowError::kRange;
    return store_float(static_cast<double>(number));
  }

  RowError append_array(PyObject* value, size_t depth) {
    if (!PyObject_CheckBuffer(value) || PyBytes_Check(value)) return RowError::kType;
    Py_buffer view;
    if (PyObject_GetBuffer(value, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      return append_rearranged(value, depth);
    }
    const RowError error = append_view(value, view, depth, false);
    PyBuffer_Release(&view);
    return error;
  }

  RowError append_view(PyObject* value, const Py_buffer& view, size_t depth, bool is_plain) {
    if (static_cast<size_t>(view.ndim) != wanted_.shape.size() - depth) return RowError::kShape;
    for (int d = 0; d < view.ndim; ++d) {
      const int64_t wanted = wanted_.shape[depth + static_cast<size_t>(d)];
      if (wanted >= 0 && wanted != view.shape[d]) return RowError::kShape;
    }
    const char* format = view.format == nullptr ? "B" : view.format;
    if (*format == '<' || *format == '=' || *format == '@') ++format;
    const auto item_bytes = static_cast<size_t>(view.itemsize);
    if (item_bytes == 0 || item_bytes > 8) return RowError::kType;  // no number we know
    const bool is_aligned = reinterpret_cast<uintptr_t>(view.buf) % item_bytes == 0;
    if (!is_plain && (*format == '>' || *format == '!' || !is_aligned)) {
      return append_rearranged(value, depth);
    }
    const auto count = static_cast<size_t>(view.len / view.itemsize);
    if (format[0] == '\0' || format[1] != '\0') return RowError::kType;
    switch (format[0]) {
      case '?':
        return append_truths(view.buf, count);
      case 'b':
        return append_cells<int8_t>(view.buf, count);
      case 'B':
        return append_cells<uint8_t>(view.buf, count);
      case 'h':
        return append_cells<int16_t>(view.buf, count);
      case 'H':
        return append_cells<uint16_t>(view.buf, count);
      case 'i':
      case 'l':
      case 'q':
        return view.itemsize == 8 ? append_cells<int64_t>(view.buf, count)
                                  : append_cells<int32_t>(view.buf, count);
      case 'I':
      case 'L':
      case 'Q':
        return view.itemsize == 8 ? append_cells<uint64_t>(view.buf, count)
                                  : append_cells<uint32_t>(view.buf, count);
      case 'e':
        return append_halves(view.buf, count);
      case 'f':
        return append_cells<float>(view.buf, count);
      case 'd':
        return append_cells<double>(view.buf, count);
      default:
        return RowError::kType;
    }
  }

  template <typename From>
  RowError append_cells(const void* memory, size_t count) {
    const auto* from = static_cast<const From*>(memory);
    if constexpr (std::is_floating_point_v<From>) {
      if (wanted_.cell != Cell::kFloat32) return RowError::kType;
      if constexpr (std::is_same_v<From, float>) {
        if (count > 0) std::memcpy(source_->values.extend(4 * count), from, 4 * count);
        return RowError::kNone;
      }
      for (size_t i = 0; i < count; ++i) {
        if (store_float(static_cast<double>(from[i])) != RowError::kNone) return RowError::kRange;
      }
      return RowError::kNone;
    } else {
      return append_integers(from, count);
    }
  }

  template <typename From>
  RowError append_integers(const From* from, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      RowError error;
      if (wanted_.cell == Cell::kFloat32) {
        // Above INT64_MAX the number turns negative, but stays out of range.
        error = store_exact_float(static_cast<int64_t>(from[i]));
      } else if constexpr (std::is_same_v<From, uint64_t>) {
        const bool fits = wanted_.cell == Cell::kUint64 || from[i] <= INT64_MAX;
        error = fits ? store_integer(from[i]) : RowError::kRange;
      } else {
        const bool fits = wanted_.cell != Cell::kUint64 || !(from[i] < From{0});
        error = fits ? store_integer(static_cast<uint64_t>(static_cast<int64_t>(from[i])))
                     : RowError::kRange;
      }
      if (error != RowError::kNone) return error;
    }
    return RowError::kNone;
  }

  // NumPy takes any byte but 0 for true; C++ must not.
  RowError append_truths(const void* memory, size_t count) {
    const auto* from = static_cast<const uint8_t*>(memory);
    for (size_t i = 0; i < count; ++i) {
      const uint8_t truth = from[i] != 0;
      const RowError error = append_integers(&truth, 1);
      if (error != RowError::kNone) return error;
    }
    return RowError::kNone;
  }

  RowError append_halves(const void* memory, size_t count) {
    if (wanted_.cell != Cell::kFloat32) return RowError::kType;
    const auto* from = static_cast<const uint16_t*>(memory);
    for (size_t i = 0; i < count; ++i) {
      const float value = half_to_float(from[i]);
      std::memcpy(source_->values.extend(4), &value, 4);
    }
    return RowError::kNone;
  }

  // Strided, byte-swapped or unaligned arrays, made plain by NumPy.
  RowError append_rearranged(PyObject* value, size_t depth) {
    try {
      nb::object array = nb::module_::import_("numpy").attr("asarray")(nb::handle(value));
      nb::object dtype = array.attr("dtype").attr("newbyteorder")("=");
      nb::object plain = array.attr("astype")(dtype, nb::arg("order") = "C");
      Py_buffer view;
      if (PyObject_GetBuffer(plain.ptr(), &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
        throw nb::python_error();
      }
      const RowError error = append_view(plain.ptr(), view, depth, true);
      PyBuffer_Release(&view);
      return error;
    } catch (nb::python_error&) {
      return RowError::kType;
    }
  }

  RowError append_string(PyObject* value) {
    if (wanted_.is_text) {
      if (!PyUnicode_Check(value)) return RowError::kType;
      Py_ssize_t size;
      const char* text = PyUnicode_AsUTF8AndSize(value, &size);
      if (text == nullptr) {  // a lone surrogate
        PyErr_Clear();
        return RowError::kRange;
      }
      return hold_string(value, text, size);
    }
    if (PyBytes_Check(value)) {
      return hold_string(value, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    }
    if (!PyByteArray_Check(value) && !PyMemoryView_Check(value)) return RowError::kType;
    PyObject* copy = PyBytes_FromObject(value);  // mutable memory must not change under us
    if (copy == nullptr) {
      PyErr_Clear();
      return RowError::kType;
    }
    const nb::object owner = nb::steal(copy);
    return hold_string(copy, PyBytes_AS_STRING(copy), PyBytes_GET_SIZE(copy));
  }

  RowError hold_string(PyObject* owner, const char* data, Py_ssize_t size) {
    source_->owners.push_back(nb::borrow(owner));
    source_->strings.emplace_back(reinterpret_cast<const uint8_t*>(data),
                                  static_cast<size_t>(size));
    return RowError::kNone;
  }

  // Arrays of strings, by way of lists.
  RowError append_string_array(PyObject* value, size_t depth) {
    if (PyBytes_Check(value) || PyUnicode_Check(value) || !nb::hasattr(value, "tolist")) {
      return RowError::kType;
    }
    try {
      const nb::object list = nb::handle(value).attr("tolist")();
      if (!PyList_Check(list.ptr())) return RowError::kShape;
      return append_sequence(list.ptr(), depth);
    } catch (nb::python_error&) {
      return RowError::kType;
    }
  }

  const RowColumn& wanted_;
  std::unique_ptr<Source> source_;
};

}  // namespace datum::python
