#include "column_collector.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <type_traits>

#include "../columns.h"
#include "exact_numbers.h"

namespace datum::python {
namespace {

constexpr Py_ssize_t kAhead = 16;          // items to prefetch
constexpr size_t kMaxCopiedString = 4096;  // longer ones are referenced, not copied

}  // namespace

ColumnCollector::ColumnCollector(const RowFeature& wanted, size_t rows)
    : wanted_(wanted), source_(std::make_unique<ColumnInput>()) {
  ColumnSource& column = source_->column;
  column.key = wanted.keys[0];
  column.kind = wanted.kind;
  column.cell = wanted.cell;
  column.layout = wanted.is_variable() ? Layout::kVariable : Layout::kFixed;
  const size_t levels = wanted.levels();
  levels_.resize(levels > 0 ? levels - 1 : 0);
  size_t items = 1;
  for (size_t d = levels; d < wanted.shape.size(); ++d) {
    items *= static_cast<size_t>(wanted.shape[d]);
  }
  row_size_ = items;
  if (!is_string(wanted.element)) {
    with_number(wanted.element, [&](auto zero) { row_size_ *= sizeof zero; });
  }
  row_items_ = items;
  column.unit = wanted.cell == Cell::kRaw ? row_size_ : items;
  if (wanted.is_variable()) {
    source_->splits.reserve(rows + 1);
    source_->splits.push_back(0);
  } else if (rows > 0) {
    constexpr size_t kMostAtOnce = size_t{1} << 20;  // perhaps no row fits
    const size_t total = rows * std::min(row_size_, kMostAtOnce / rows);
    is_string(wanted.element) ? strings_().reserve(total / sizeof(ByteSpan))
                              : values_().reserve(total);
  }
}

RowError ColumnCollector::add(PyObject* value) {
  if (value == nullptr || value == Py_None) return add_missing();
  const RowError error = wanted_.shape.empty() ? append_scalar(value) : append(value, 0);
  if (error != RowError::kNone) return error;
  if (wanted_.is_optional) source_->present.push_back(1);
  if (wanted_.is_variable()) end_row();
  return RowError::kNone;
}

void ColumnCollector::end_row() {
  source_->splits.push_back(static_cast<int64_t>(row_size_ == 0 ? 0 : filled() / row_size_));
  for (Level& level : levels_) {
    const auto first = level.lengths.begin() + level.splits.back();
    is_uneven_ = is_uneven_ || std::adjacent_find(first, level.lengths.end(),
                                                  std::not_equal_to<>()) != level.lengths.end();
    level.splits.push_back(static_cast<int64_t>(level.lengths.size()));
  }
}

RowError ColumnCollector::add_missing() {
  if (!wanted_.is_optional) return RowError::kMissing;
  source_->present.push_back(0);
  ++missing_;
  if (wanted_.is_variable()) {
    end_row();
  } else if (is_string(wanted_.element)) {
    strings_().resize(strings_().size() + row_size_);
  } else if (row_size_ > 0) {
    std::memset(values_().extend(row_size_), 0, row_size_);
  }
  return RowError::kNone;
}

void ColumnCollector::truncate(size_t rows) {
  size_t size = rows * row_size_;
  if (wanted_.is_variable()) {
    source_->splits.resize(rows + 1);
    size = static_cast<size_t>(source_->splits.back()) * row_size_;
  }
  for (Level& level : levels_) {
    level.splits.resize(rows + 1);
    level.lengths.resize(static_cast<size_t>(level.splits.back()));
  }
  if (is_string(wanted_.element)) {
    strings_().resize(size);
  } else {
    values_().truncate(size);
  }
  if (!wanted_.is_optional) return;
  for (size_t row = rows; row < source_->present.size(); ++row) missing_ -= !source_->present[row];
  source_->present.resize(rows);
}

// Returns the row of the item `at`.
size_t ColumnCollector::row_of(size_t at) const {
  const size_t unit = at / std::max<size_t>(1, row_items_);
  if (!wanted_.is_variable()) return unit;
  const auto& splits = source_->splits;
  const auto after = std::upper_bound(splits.begin(), splits.end(), static_cast<int64_t>(unit));
  return static_cast<size_t>(after - splits.begin()) - 1;
}

// Finds the first number that float32 cannot represent well enough.
void ColumnCollector::find_wide_value() {
  with_number(wanted_.element, [&](auto zero) {
    using Number = decltype(zero);
    if constexpr (std::is_arithmetic_v<Number> && sizeof(Number) >= 4) {
      const auto* numbers = reinterpret_cast<const Number*>(values_().data());
      const size_t at = find_wide(std::span(numbers, values_().size() / sizeof(Number)));
      if (at != kNoneWide) wide_.emplace(row_of(at), nb::cast(numbers[at]));
    }
  });
}

// Converts doubles to the stored floats; keeps the doubles if any was rounded.
void ColumnCollector::narrow_values() {
  const size_t count = values_().size() / sizeof(double);
  Buffer floats;
  const std::span doubles(reinterpret_cast<const double*>(values_().data()), count);
  const Narrowing found = narrow(doubles, reinterpret_cast<float*>(floats.extend(4 * count)));
  if (found.first_wide != kNoneWide) {
    wide_.emplace(row_of(found.first_wide), nb::cast(doubles[found.first_wide]));
  }
  is_rounded_ = found.is_rounded;
  std::swap(source_->values, floats);
  if (!is_rounded_) return;
  exact_ = std::make_unique<ColumnInput>();
  exact_->column = source_->column;
  exact_->column.kind = Kind::kBytes;
  exact_->column.cell = Cell::kRaw;
  exact_->column.unit *= sizeof(double);
  exact_->values = std::move(floats);
  exact_->splits = source_->splits;
  exact_->present = source_->present;
  exact_->adopt_own_memory();
}

std::vector<std::unique_ptr<ColumnInput>> ColumnCollector::finish() {
  if (missing_ == 0) source_->present.clear();
  if (wanted_.is_narrowed()) {
    narrow_values();
  } else if (wanted_.is_watched) {
    find_wide_value();
  }
  std::vector<std::unique_ptr<ColumnInput>> sources;
  sources.push_back(std::move(source_));
  for (size_t i = 0; i < levels_.size(); ++i) {
    auto lengths = std::make_unique<ColumnInput>();
    lengths->column.key = wanted_.keys.at(i + 1);
    lengths->column.layout = Layout::kVariable;
    const size_t bytes = levels_[i].lengths.size() * sizeof(int64_t);
    if (bytes > 0) std::memcpy(lengths->values.extend(bytes), levels_[i].lengths.data(), bytes);
    lengths->splits = std::move(levels_[i].splits);
    lengths->present = sources[0]->present;
    sources.push_back(std::move(lengths));
  }
  for (auto& source : sources) source->adopt_own_memory();
  return sources;
}

// Lists and tuples are traversed to `depth` dimensions; arrays must have all that are left.
RowError ColumnCollector::append(PyObject* value, size_t depth) {
  if (PyList_Check(value) || PyTuple_Check(value)) return append_sequence(value, depth);
  if (depth == wanted_.shape.size()) return append_scalar(value);
  return append_array(value, depth);
}

RowError ColumnCollector::append_scalar(PyObject* value) {
  if (is_string(wanted_.element)) return append_string(value);
  if (PyFloat_CheckExact(value)) return append_double(PyFloat_AS_DOUBLE(value));
  if (PyBool_Check(value)) {
    return wanted_.takes(Element::kBool) ? convert(value == Py_True) : RowError::kType;
  }
  if (PyLong_Check(value)) return append_long(value);
  ArrayView view;
  if (view_scalar(value, view)) return append_view(view, wanted_.shape.size());
  if (PyFloat_Check(value)) return append_double(PyFloat_AS_DOUBLE(value));
  return append_array(value, wanted_.shape.size());
}

RowError ColumnCollector::append_sequence(PyObject* value, size_t depth) {
  if (depth == wanted_.shape.size()) return RowError::kShape;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
  if (wanted_.shape[depth] >= 0 && wanted_.shape[depth] != size) return RowError::kShape;
  if (depth > 0 && depth <= levels_.size()) levels_[depth - 1].lengths.push_back(size);
  Py_ssize_t i = 0;
  if (depth + 1 == wanted_.shape.size() && !is_string(wanted_.element) && size > 0) {
    i = PyFloat_CheckExact(PySequence_Fast_GET_ITEM(value, 0)) ? append_floats(value, size)
                                                               : append_integers(value, size);
  }
  for (; i < size; ++i) {
    const RowError error = append(PySequence_Fast_GET_ITEM(value, i), depth + 1);
    if (error != RowError::kNone) return error;
  }
  return RowError::kNone;
}

// Returns how many items from the first on are floats and were appended: the rest goes one by one.
Py_ssize_t ColumnCollector::append_floats(PyObject* list, Py_ssize_t size) {
  if (wanted_.element != Element::kFloat64 || !wanted_.takes(Element::kFloat64)) return 0;
  const size_t before = values_().size();
  auto* out =
      reinterpret_cast<double*>(values_().extend(sizeof(double) * static_cast<size_t>(size)));
  PyObject** items = PySequence_Fast_ITEMS(list);
  Py_ssize_t i = 0;
  for (; i < size; ++i) {
    if (i + kAhead < size) prefetch(items[i + kAhead]);
    if (!PyFloat_CheckExact(items[i])) break;
    out[i] = PyFloat_AS_DOUBLE(items[i]);
  }
  values_().truncate(before + sizeof(double) * static_cast<size_t>(i));
  return i;
}

// The same for integers of one digit, to int64.
Py_ssize_t ColumnCollector::append_integers(PyObject* list, Py_ssize_t size) {
  if (wanted_.element != Element::kInt64 || !wanted_.takes(Element::kInt64)) return 0;
  const size_t before = values_().size();
  auto* out =
      reinterpret_cast<int64_t*>(values_().extend(sizeof(int64_t) * static_cast<size_t>(size)));
  Py_ssize_t i = 0;
  for (; i < size; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(list, i);
    if (!PyLong_CheckExact(item) || !take_small(item, out[i])) break;
    signs_ |= static_cast<uint64_t>(out[i]);
  }
  values_().truncate(before + sizeof(int64_t) * static_cast<size_t>(i));
  return i;
}

RowError ColumnCollector::append_long(PyObject* value) {
  int64_t number;
  if (!take_small(value, number)) {
    int overflow = 0;
    number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow < 0) return RowError::kRange;
    if (overflow > 0) {
      const uint64_t wide = PyLong_AsUnsignedLongLong(value);
      if (PyErr_Occurred()) {
        PyErr_Clear();
        return RowError::kRange;
      }
      return wanted_.takes(Element::kUint64) ? convert(wide) : RowError::kType;
    }
  }
  return wanted_.takes(Element::kInt64) ? convert(number) : RowError::kType;
}

RowError ColumnCollector::append_double(double value) {
  return wanted_.takes(Element::kFloat64) ? convert(value) : RowError::kType;
}

template <typename To>
void ColumnCollector::put(To value) {
  std::memcpy(values_().extend(sizeof value), &value, sizeof value);
}

// Appends one number, if it fits the column: integers exactly, floats rounded, but not to infinity.
template <typename From>
RowError ColumnCollector::convert(From value) {
  if constexpr (std::is_same_v<From, bool>) {
    return convert(static_cast<int64_t>(value));
  } else if constexpr (std::is_same_v<From, Half>) {
    return convert(to_float(value));
  } else {
    if constexpr (std::is_integral_v<From> && std::is_signed_v<From>) {
      signs_ |= static_cast<uint64_t>(static_cast<int64_t>(value));
    }
    return with_number(wanted_.element, [&](auto zero) -> RowError {
      using To = decltype(zero);
      if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, Bfloat> ||
                    std::is_same_v<From, Bfloat>) {
        return RowError::kType;
      } else if constexpr (std::is_floating_point_v<From>) {
        if constexpr (!std::is_floating_point_v<To>) {
          return RowError::kType;
        } else {
          const auto cast = static_cast<To>(value);
          if (std::isinf(cast) && !std::isinf(value)) return RowError::kRange;
          is_rounded_ = is_rounded_ || (static_cast<From>(cast) != value && value == value);
          put(cast);
          return RowError::kNone;
        }
      } else if constexpr (std::is_same_v<To, bool>) {
        if (value != From{0} && value != From{1}) return RowError::kRange;
        put(static_cast<uint8_t>(value));
        return RowError::kNone;
      } else {
        To fitted;
        if (!fit_integer(value, fitted)) return RowError::kRange;
        put(fitted);
        return RowError::kNone;
      }
    });
  }
}

RowError ColumnCollector::append_array(PyObject* value, size_t depth) {
  if (!is_plain_array(value)) return RowError::kType;
  if (has_objects(value)) return append_strings(value, depth);
  const nb::object viewable = to_viewable(value);
  if (!viewable.is_valid()) {
    PyErr_Clear();
    return RowError::kType;
  }
  return append_view(view_array(viewable.ptr()), depth);
}

RowError ColumnCollector::append_view(const ArrayView& view, size_t depth) {
  if (view.rank != wanted_.shape.size() - depth) return RowError::kShape;
  if (view.count > wanted_.max_array_items) return RowError::kShape;
  for (size_t d = 0; d < view.rank; ++d) {
    const int64_t wanted = wanted_.shape[depth + d];
    if (wanted >= 0 && wanted != view.shape[d]) return RowError::kShape;
  }
  if (is_string(wanted_.element) || !wanted_.takes(view.element)) return RowError::kType;
  size_t rows = 1;  // in the current dimension
  for (size_t d = 0; d < view.rank && depth + d <= levels_.size(); ++d) {
    const auto length = static_cast<int64_t>(view.shape[d]);
    if (depth + d > 0) {
      std::vector<int64_t>& lengths = levels_[depth + d - 1].lengths;
      lengths.insert(lengths.end(), rows, length);
    }
    rows *= static_cast<size_t>(length);
  }
  return with_number(view.element, [&](auto zero) {
    return append_items(static_cast<const decltype(zero)*>(view.items), view.count);
  });
}

template <typename From>
RowError ColumnCollector::append_items(const From* from, size_t count) {
  if constexpr (std::is_same_v<From, bool>) {  // NumPy reads any byte but 0 as true; C++ must not
    const auto* bytes = reinterpret_cast<const uint8_t*>(from);
    for (size_t i = 0; i < count; ++i) {
      const RowError error = convert(bytes[i] != 0);
      if (error != RowError::kNone) return error;
    }
    return RowError::kNone;
  } else {
    const bool is_same = with_number(
        wanted_.element, [](auto zero) { return std::is_same_v<decltype(zero), From>; });
    if (is_same) {
      if constexpr (std::is_integral_v<From> && std::is_signed_v<From>) {
        From signs = 0;
        for (size_t i = 0; i < count; ++i) signs |= from[i];
        signs_ |= static_cast<uint64_t>(static_cast<int64_t>(signs));
      }
      if (count > 0)
        std::memcpy(values_().extend(sizeof(From) * count), from, sizeof(From) * count);
      return RowError::kNone;
    }
    for (size_t i = 0; i < count; ++i) {
      const RowError error = convert(from[i]);
      if (error != RowError::kNone) return error;
    }
    return RowError::kNone;
  }
}

RowError ColumnCollector::append_string(PyObject* value) {
  if (PyUnicode_Check(value)) {
    if (!wanted_.takes(Element::kText)) return RowError::kType;
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(value, &size);
    if (text == nullptr) {  // a lone surrogate
      PyErr_Clear();
      return RowError::kRange;
    }
    return put_string(value, text, size);
  }
  if (is_plain_array(value)) return append_array(value, wanted_.shape.size());
  if (!wanted_.takes(Element::kBytes)) return RowError::kType;
  if (PyBytes_Check(value)) {
    if (!is_plain_bytes(value) && !wanted_.takes(Element::kFile)) return RowError::kType;
    return put_string(value, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
  }
  if (!PyByteArray_Check(value) && !PyMemoryView_Check(value)) return RowError::kType;
  const nb::object copy = nb::steal(PyBytes_FromObject(value));  // the original may change
  if (!copy.is_valid()) {  // a view of memory that was released
    PyErr_Clear();
    return RowError::kType;
  }
  return put_string(copy.ptr(), PyBytes_AS_STRING(copy.ptr()), PyBytes_GET_SIZE(copy.ptr()));
}

RowError ColumnCollector::put_string(PyObject* owner, const char* data, Py_ssize_t size) {
  const auto bytes = static_cast<size_t>(size);
  const auto* from = reinterpret_cast<const uint8_t*>(data);
  if (bytes > kMaxCopiedString) {
    source_->owners.push_back(nb::borrow(owner));
  } else {
    from = source_->copy_string(from, bytes);
  }
  strings_().emplace_back(from, bytes);
  return RowError::kNone;
}

// Appends arrays of strings, converted to lists.
RowError ColumnCollector::append_strings(PyObject* array, size_t depth) {
  if (!is_string(wanted_.element)) return RowError::kType;
  const nb::object items = to_list(array);
  if (!items.is_valid()) throw nb::python_error();
  if (PyList_Check(items.ptr())) return append_sequence(items.ptr(), depth);
  if (is_plain_array(items.ptr())) return RowError::kType;  // would recurse endlessly
  return depth == wanted_.shape.size() ? append_string(items.ptr()) : RowError::kShape;
}

}  // namespace datum::python
