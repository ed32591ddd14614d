// The values of one feature over all rows, collected from Python objects.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../elements.h"
#include "../narrow.h"
#include "../prefetch.h"
#include "column_input.h"
#include "numpy_values.h"

namespace datum::python {

enum class RowError : uint8_t { kNone, kMissing, kType, kRange, kShape, kUnknownKey };

// The values that one feature accepts. `shape` is their shape; its first items may be -1. An
// `element` of float64 with a `cell` of float32 is collected exactly and narrowed at the end.
struct RowFeature {
  nb::object name;
  std::vector<std::string> keys;  // of the values, then of the row lengths of inner dimensions
  Kind kind = Kind::kInt64;
  Cell cell = Cell::kInt64;
  Element element = Element::kInt64;
  uint32_t accepts = 0;  // a bit for each accepted element
  bool is_optional = false;
  bool is_skipped = false;  // not collected
  bool is_watched = false;  // whether to report numbers that float32 cannot represent well enough
  std::vector<int64_t> shape;
  size_t max_array_items = 0;  // larger arrays are refused

  bool is_variable() const { return !shape.empty() && shape[0] < 0; }
  // The number of dimensions that differ in length.
  size_t levels() const {
    size_t count = 0;
    while (count < shape.size() && shape[count] < 0) ++count;
    return count;
  }
  bool is_narrowed() const { return element == Element::kFloat64 && cell == Cell::kFloat32; }
  bool takes(Element given) const { return (accepts >> static_cast<unsigned>(given)) & 1; }
};

class ColumnCollector {
 public:
  // `rows` is the largest possible number.
  ColumnCollector(const RowFeature& wanted, size_t rows);

  // Adds the value of one more row, null if it has none. After an error, truncate the column.
  RowError add(PyObject* value);
  // Keeps the first `rows` rows.
  void truncate(size_t rows);
  // Returns a source for each key; ends the collecting.
  std::vector<std::unique_ptr<ColumnInput>> finish();
  // Facts about floats, after `finish`: the values before rounding, null if none was rounded, and
  // the row and value of the first that float32 cannot represent well enough.
  std::unique_ptr<ColumnInput> take_exact() { return std::move(exact_); }
  bool is_rounded() const { return is_rounded_; }
  const std::optional<std::pair<size_t, nb::object>>& wide() const { return wide_; }

  bool has_negative() const { return static_cast<int64_t>(signs_) < 0; }
  // Whether inner rows of one value differ in length.
  bool is_uneven() const { return is_uneven_; }
  size_t missing() const { return missing_; }

 private:
  // The lengths of all rows of one inner dimension, and where those of each record start.
  struct Level {
    std::vector<int64_t> lengths;
    std::vector<int64_t> splits{0};
  };

  RowError add_missing();
  void end_row();
  void narrow_values();
  void find_wide_value();
  size_t row_of(size_t at) const;
  size_t filled() const {
    return is_string(wanted_.element) ? strings_().size() : values_().size();
  }
  RowError append(PyObject* value, size_t depth);
  RowError append_scalar(PyObject* value);
  RowError append_sequence(PyObject* value, size_t depth);
  Py_ssize_t append_floats(PyObject* list, Py_ssize_t size);
  Py_ssize_t append_integers(PyObject* list, Py_ssize_t size);
  RowError append_long(PyObject* value);
  RowError append_double(double value);
  RowError append_array(PyObject* value, size_t depth);
  RowError append_view(const ArrayView& view, size_t depth);
  RowError append_string(PyObject* value);
  RowError append_strings(PyObject* array, size_t depth);
  RowError put_string(PyObject* owner, const char* data, Py_ssize_t size);
  template <typename To>
  void put(To value);
  template <typename From>
  RowError convert(From value);
  template <typename From>
  RowError append_items(const From* from, size_t count);

  Buffer& values_() const { return source_->values; }
  std::vector<ByteSpan>& strings_() const { return source_->strings; }

  const RowFeature& wanted_;
  std::unique_ptr<ColumnInput> source_;
  size_t row_size_;   // the size of a row in `filled`, unless it is variable: bytes, or strings
  size_t row_items_;  // the same in items
  std::vector<Level> levels_;  // from the second dimension on
  size_t missing_ = 0;
  bool is_uneven_ = false;
  bool is_rounded_ = false;
  std::unique_ptr<ColumnInput> exact_;
  std::optional<std::pair<size_t, nb::object>> wide_;
  uint64_t signs_ = 0;  // all integers, or-ed
};

}  // namespace datum::python
