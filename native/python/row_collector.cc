// Rows, dicts of Python values, collected as sources for encode.h.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "column_collector.h"

namespace datum::python {
namespace {

constexpr const char* kRowErrors[] = {"", "missing", "type", "range", "shape", "unknown key"};

void make_row_feature(RowFeature* self, nb::str name, std::vector<nb::bytes> keys, Kind kind,
                      Cell cell, std::optional<Element> element, uint32_t accepts, bool is_optional,
                      std::vector<int64_t> shape, size_t max_array_items, bool is_watched) {
  RowFeature& feature = *new (self) RowFeature{};
  feature.name = name;
  for (const nb::bytes& key : keys) feature.keys.emplace_back(key.c_str(), key.size());
  feature.kind = kind;
  feature.cell = cell;
  feature.element = element.value_or(Element::kInt64);
  feature.accepts = accepts;
  feature.is_optional = is_optional;
  feature.is_skipped = !element.has_value();
  feature.shape = std::move(shape);
  feature.max_array_items = max_array_items;
  feature.is_watched = is_watched;
  if (!feature.is_skipped && keys.size() != std::max<size_t>(1, feature.levels())) {
    throw std::invalid_argument("a key is needed for the values and each inner dimension");
  }
}

// The keys of rows are mostly identical objects; otherwise they are compared.
bool is_same_key(PyObject* key, PyObject* name) {
  if (key == name) return true;
  if (!PyUnicode_CheckExact(key) || !PyUnicode_CheckExact(name)) return false;
  const Py_ssize_t length = PyUnicode_GET_LENGTH(key);
  const int kind = PyUnicode_KIND(key);
  if (length != PyUnicode_GET_LENGTH(name) || kind != static_cast<int>(PyUnicode_KIND(name))) {
    return false;
  }
  const auto bytes = static_cast<size_t>(length) * static_cast<size_t>(kind);
  return std::memcmp(PyUnicode_DATA(key), PyUnicode_DATA(name), bytes) == 0;
}

// The values of one feature over all rows.
struct CollectedColumn {
  nb::list sources;  // one for each key
  size_t missing = 0;
  bool has_negative = false;      // an integer
  bool is_uneven = false;         // whether inner rows of one value differ in length
  bool is_rounded = false;        // whether float32 changed a value
  nb::object wide = nb::none();   // row and value of the first that float32 cannot represent well
  nb::object exact = nb::none();  // the source of the values before they were narrowed
};

// Collects rows until one does not fit; then features can be changed and collecting continues.
class RowCollector {
 public:
  RowCollector(nb::list features, bool ignores_none) : ignores_none_(ignores_none) {
    for (nb::handle feature : features) slots_.push_back(make_slot(feature, 0));
    set_names();
  }
  RowCollector(const RowCollector&) = delete;
  RowCollector& operator=(const RowCollector&) = delete;

  // Collects rows from the first that was not collected yet. The fault is (error, row, name); all
  // rows before that one are kept.
  void collect(nb::list rows) {
    for (; rows_done_ < rows.size(); ++rows_done_) {
      const nb::object row = rows[rows_done_];
      nb::object name;
      if (rows_done_ == 0) reserve(rows.size());
      const RowError error = PyDict_Check(row.ptr()) ? add_row(row.ptr(), name) : RowError::kType;
      if (error == RowError::kNone) continue;
      for (Slot& slot : slots_) {
        if (slot.column) slot.column->truncate(rows_done_);
      }
      raise_row_fault(error, rows_done_, name);
    }
  }

  // Replaces the features. Those that are the same objects keep their values; those of others are
  // collected again, and a fault leaves everything unchanged.
  void update(nb::list features, nb::list rows) {
    std::unordered_map<PyObject*, Slot*> kept;
    for (Slot& slot : slots_) kept.emplace(slot.feature.ptr(), &slot);
    std::vector<Slot> slots;
    for (nb::handle feature : features) {
      if (kept.contains(feature.ptr())) {
        slots.emplace_back();
      } else {
        slots.push_back(make_slot(feature, rows.size()));
        recollect(slots.back(), rows);
      }
    }
    for (size_t i = 0; i < slots.size(); ++i) {
      const auto found = kept.find(nb::handle(features[i]).ptr());
      if (found != kept.end()) slots[i] = std::move(*found->second);
    }
    slots_ = std::move(slots);
    set_names();
  }

  size_t rows_done() const { return rows_done_; }

  // Returns the collected column of each feature, None if it is skipped.
  nb::list finish() {
    nb::list found;
    for (Slot& slot : slots_) {
      if (slot.column) {
        found.append(nb::cast(take_column(*slot.column)));
      } else {
        found.append(nb::none());
      }
    }
    slots_.clear();
    return found;
  }

 private:
  struct Slot {
    nb::object feature;
    const RowFeature* wanted = nullptr;
    std::unique_ptr<ColumnCollector> column;  // null if it is skipped
  };

  [[noreturn]] static void raise_row_fault(RowError error, size_t row, nb::handle name) {
    const nb::object shown = name.is_valid() ? nb::borrow(name) : nb::none();
    raise_fault(nb::make_tuple(kRowErrors[static_cast<size_t>(error)], row, shown));
  }

  static CollectedColumn take_column(ColumnCollector& column) {
    CollectedColumn found;
    for (auto& source : column.finish()) found.sources.append(nb::cast(std::move(source)));
    found.missing = column.missing();
    found.has_negative = column.has_negative();
    found.is_uneven = column.is_uneven();
    found.is_rounded = column.is_rounded();
    if (column.wide()) found.wide = nb::make_tuple(column.wide()->first, column.wide()->second);
    if (auto exact = column.take_exact()) found.exact = nb::cast(std::move(exact));
    return found;
  }

  static Slot make_slot(nb::handle feature, size_t rows) {
    Slot slot;
    slot.feature = nb::borrow(feature);
    slot.wanted = &nb::cast<const RowFeature&>(feature);
    if (!slot.wanted->is_skipped) {
      slot.column = std::make_unique<ColumnCollector>(*slot.wanted, rows);
    }
    return slot;
  }

  void set_names() {
    names_ = nb::steal(PySet_New(nullptr));
    for (const Slot& slot : slots_) {
      if (PySet_Add(names_.ptr(), slot.wanted->name.ptr()) != 0) throw nb::python_error();
    }
  }

  void reserve(size_t rows) {
    for (Slot& slot : slots_) slot = make_slot(slot.feature, rows);
  }

  void recollect(Slot& slot, nb::list rows) {
    if (!slot.column) return;
    for (size_t i = 0; i < rows_done_; ++i) {
      const nb::object row = rows[i];
      const RowError error = slot.column->add(look_up(row.ptr(), *slot.wanted));
      if (error != RowError::kNone) raise_row_fault(error, i, slot.wanted->name);
    }
  }

  static PyObject* look_up(PyObject* row, const RowFeature& wanted) {
    PyObject* value = PyDict_GetItemWithError(row, wanted.name.ptr());
    if (value == nullptr && PyErr_Occurred()) throw nb::python_error();
    return value;
  }

  // Keys mostly come in the order of the features. Their values are scattered in memory:
  // prefetching all of them is faster than waiting for each. Nothing in between runs Python code.
  RowError add_row(PyObject* row, nb::object& name) {
    PyObject* key;
    PyObject* value;
    Py_ssize_t position = 0;
    size_t ordered = 0;
    values_.resize(slots_.size());
    while (ordered < slots_.size() && PyDict_Next(row, &position, &key, &value)) {
      if (!is_same_key(key, slots_[ordered].wanted->name.ptr())) break;
      prefetch(value);
      values_[ordered++] = value;
    }
    for (size_t i = 0; i < ordered; ++i) {
      const RowError error = add_value(slots_[i], values_[i], name);
      if (error != RowError::kNone) return error;
    }
    auto found = static_cast<Py_ssize_t>(ordered);
    for (size_t i = ordered; i < slots_.size(); ++i) {
      value = look_up(row, *slots_[i].wanted);
      found += value != nullptr;
      const RowError error = add_value(slots_[i], value, name);
      if (error != RowError::kNone) return error;
    }
    return found == PyDict_GET_SIZE(row) ? RowError::kNone : check_others(row, name);
  }

  static RowError add_value(Slot& slot, PyObject* value, nb::object& name) {
    if (!slot.column) return RowError::kNone;
    const RowError error = slot.column->add(value);
    if (error != RowError::kNone) name = slot.wanted->name;
    return error;
  }

  // Finds a key that no feature has.
  RowError check_others(PyObject* row, nb::object& name) {
    PyObject* key;
    PyObject* value;
    Py_ssize_t position = 0;
    while (PyDict_Next(row, &position, &key, &value)) {
      if (ignores_none_ && value == Py_None) continue;
      const int is_known = PySet_Contains(names_.ptr(), key);
      if (is_known < 0) throw nb::python_error();
      if (is_known == 1) continue;
      name = nb::borrow(key);
      return RowError::kUnknownKey;
    }
    return RowError::kNone;
  }

  std::vector<Slot> slots_;
  nb::object names_;               // of all features, a set
  std::vector<PyObject*> values_;  // of the current row
  size_t rows_done_ = 0;
  bool ignores_none_;
};

}  // namespace

void bind_row_collector(nb::module_& module) {
  import_numpy_values();
  nb::enum_<Element>(module, "Element")
      .value("BOOL", Element::kBool)
      .value("INT8", Element::kInt8)
      .value("INT16", Element::kInt16)
      .value("INT32", Element::kInt32)
      .value("INT64", Element::kInt64)
      .value("UINT8", Element::kUint8)
      .value("UINT16", Element::kUint16)
      .value("UINT32", Element::kUint32)
      .value("UINT64", Element::kUint64)
      .value("FLOAT16", Element::kFloat16)
      .value("BFLOAT16", Element::kBfloat16)
      .value("FLOAT32", Element::kFloat32)
      .value("FLOAT64", Element::kFloat64)
      .value("COMPLEX", Element::kComplex)
      .value("TIME", Element::kTime)
      .value("BYTES", Element::kBytes)
      .value("TEXT", Element::kText)
      .value("FILE", Element::kFile);
  nb::class_<RowFeature>(module, "RowFeature")
      .def("__init__", make_row_feature, nb::arg("name"), nb::arg("keys"), nb::arg("kind"),
           nb::arg("cell"), nb::arg("element").none(), nb::arg("accepts"), nb::arg("is_optional"),
           nb::arg("shape"), nb::arg("max_array_items"), nb::arg("is_watched"));
  nb::class_<CollectedColumn>(module, "CollectedColumn")
      .def_ro("sources", &CollectedColumn::sources)
      .def_ro("missing", &CollectedColumn::missing)
      .def_ro("has_negative", &CollectedColumn::has_negative)
      .def_ro("is_uneven", &CollectedColumn::is_uneven)
      .def_ro("is_rounded", &CollectedColumn::is_rounded)
      .def_ro("wide", &CollectedColumn::wide)
      .def_ro("exact", &CollectedColumn::exact);
  nb::class_<RowCollector>(module, "RowCollector")
      .def(nb::init<nb::list, bool>(), nb::arg("features"), nb::arg("ignores_none"))
      .def("collect", &RowCollector::collect, nb::arg("rows"))
      .def("update", &RowCollector::update, nb::arg("features"), nb::arg("rows"))
      .def("finish", &RowCollector::finish)
      .def_prop_ro("rows_done", &RowCollector::rows_done);
}

}  // namespace datum::python
