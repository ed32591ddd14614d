// The values of one feature over all rows, gathered from Python objects.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../elements.h"
#include "numpy_values.h"
#include "source.h"

namespace datum::python {

enum class RowError : uint8_t { kNone, kMissing, kType, kRange, kShape, kUnknownKey };

// What one feature accepts. `shape` is what a value must have; its first items may be -1.
struct RowFeature {
  nb::object name;
  std::vector<std::string> keys;  // of the values, then of the row lengths of inner dimensions
  Kind kind = Kind::kInt64;
  Cell cell = Cell::kInt64;
  Element element = Element::kInt64;
  uint32_t accepts = 0;  // a bit for each element that a value may be of
  bool is_optional = false;
  bool is_skipped = false;  // left to others
  std::vector<int64_t> shape;
  size_t max_array_items = 0;  // larger arrays are refused

  bool is_variable() const { return !shape.empty() && shape[0] < 0; }
  // How many dimensions differ in length.
  size_t levels() const {
    size_t count = 0;
    while (count < shape.size() && shape[count] < 0) ++count;
    return count;
  }
  bool takes(Element given) const { return (accepts >> static_cast<unsigned>(given)) & 1; }
};

// Asks for the memory of an object that will be looked at soon.
inline void prefetch(const void* memory) { __builtin_prefetch(memory); }

class ColumnCollector {
 public:
  // `rows` is how many there may be.
  ColumnCollector(const RowFeature& wanted, size_t rows);

  // The value of one more row, null if it has none. After an error the column must be truncated.
  RowError add(PyObject* value);
  // Keeps the first `rows` rows.
  void truncate(size_t rows);
  // A source for each key.
  std::vector<std::unique_ptr<Source>> finish();

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
  std::unique_ptr<Source> source_;
  size_t row_size_;  // what a row adds to `filled`, unless it is variable: bytes, or strings
  std::vector<Level> levels_;  // of the second dimension on
  size_t missing_ = 0;
  bool is_uneven_ = false;
  uint64_t signs_ = 0;  // all integers, or-ed
};

}  // namespace datum::python
