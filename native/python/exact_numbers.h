// Exact numbers: Python integers, and exact conversion to other types.
#pragma once

#include <Python.h>

#include <cstdint>
#include <type_traits>

namespace datum::python {

// Reads an integer of one digit, as most are, without a call.
inline bool take_small(PyObject* value, int64_t& out) {
#if PY_VERSION_HEX >= 0x030c0000
  const auto* number = reinterpret_cast<const PyLongObject*>(value);
  if (!PyUnstable_Long_IsCompact(number)) return false;
  out = PyUnstable_Long_CompactValue(number);
  return true;
#else
  const auto* number = reinterpret_cast<const PyLongObject*>(value);
  const Py_ssize_t digits = Py_SIZE(number);
  if (digits < -1 || digits > 1) return false;
  out = digits == 0 ? 0 : digits * static_cast<int64_t>(number->ob_digit[0]);
  return true;
#endif
}

// Returns whether `To` represents an integer exactly; if so, sets `out`.
template <typename To, typename From>
bool fit_integer(From value, To& out) {
  out = static_cast<To>(value);
  if constexpr (std::is_floating_point_v<To>) {
    constexpr To kEnd = std::is_signed_v<From> ? To{0x1p63} : To{0x1p64};
    return out < kEnd && static_cast<From>(out) == value;
  } else {
    return static_cast<From>(out) == value && (out < To{0}) == (value < From{0});
  }
}

}  // namespace datum::python
