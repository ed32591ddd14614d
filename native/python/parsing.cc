// Bindings of parse.h and discover.h.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>

#include "../discover.h"
#include "../parse.h"
#include "bindings.h"

namespace datum::python {
namespace {

constexpr const char* kFaultNames[] = {
    "", "malformed", "kind", "count", "missing", "range", "raw bytes", "text", "blank",
};

// Below this, keeping other columns' memory alive costs less than an owner for each column.
constexpr size_t kSmallBatch = 4096;

void make_spec(ColumnSpec* self, nb::bytes key, Kind kind, Layout layout, Cell cell, size_t unit,
               bool is_text, bool is_optional, nb::bytes default_value) {
  ColumnSpec& spec = *new (self) ColumnSpec();
  spec.key.assign(key.c_str(), key.size());
  spec.kind = kind;
  spec.layout = layout;
  spec.cell = cell;
  spec.unit = unit;
  spec.is_text = is_text;
  spec.is_optional = is_optional;
  const auto* value = reinterpret_cast<const uint8_t*>(default_value.c_str());
  spec.default_value.assign(value, value + default_value.size());
}

RecordRun checked_run(const BufferView& buffer, const Int64Input& starts,
                      const Int64Input& lengths) {
  const RecordRun run{buffer.bytes(), as_span(starts), as_span(lengths)};
  if (!run.is_sound()) throw std::out_of_range("records are outside the buffer");
  return run;
}

nb::list parse(const Plan& plan, nb::handle object, const Int64Input& starts,
               const Int64Input& lengths, size_t threads) {
  const BufferView buffer(object);
  const RecordRun run = checked_run(buffer, starts, lengths);
  std::vector<Column> columns;
  Fault fault;
  {
    nb::gil_scoped_release release;
    fault = parse_records(plan, run, threads, columns);
  }
  if (fault.code != FaultCode::kNone) raise_fault(fault);
  return to_arrays(plan, std::move(columns));
}

// Returns the byte strings at `slices` (start, length, start, length, ...) as `bytes` or `str`.
nb::list take_strings(nb::handle object, const Int64Input& slices, bool is_text) {
  const BufferView buffer(object);
  const auto size = static_cast<int64_t>(buffer.bytes().size());
  const size_t count = slices.shape(0) / 2;
  nb::list result = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; i < count; ++i) {
    const int64_t start = slices.data()[2 * i];
    const int64_t length = slices.data()[2 * i + 1];
    if (start < 0 || start > size || length < 0 || length > size - start) {
      throw std::out_of_range("a slice is outside the buffer");
    }
    const auto* text = reinterpret_cast<const char*>(buffer.bytes().data()) + start;
    PyObject* item = is_text ? PyUnicode_DecodeUTF8(text, length, nullptr)
                             : PyBytes_FromStringAndSize(text, length);
    if (item == nullptr) throw nb::python_error();
    PyList_SET_ITEM(result.ptr(), static_cast<Py_ssize_t>(i), item);
  }
  return result;
}

// Adds records; returns how many precede the first malformed one.
size_t add_records(Discovery& discovery, nb::handle object, const Int64Input& starts,
                   const Int64Input& lengths) {
  const BufferView buffer(object);
  const RecordRun run = checked_run(buffer, starts, lengths);
  nb::gil_scoped_release release;
  for (size_t i = 0; i < run.size(); ++i) {
    if (!discovery.add(run[i])) return i;
  }
  return run.size();
}

nb::object range_or_none(const CountRange& range) {
  if (range.least > range.most) return nb::none();
  return nb::make_tuple(range.least, range.most);
}

nb::dict features_found(const Discovery::Features& features) {
  nb::dict result;
  for (const auto& [key, stats] : features) {
    result[nb::str(key.data(), key.size())] = nb::make_tuple(
        stats.records,
        nb::make_tuple(stats.kinds[0], stats.kinds[1], stats.kinds[2], stats.kinds[3]),
        range_or_none(stats.values), range_or_none(stats.steps), range_or_none(stats.bytes),
        stats.not_utf8);
  }
  return result;
}

}  // namespace

void raise_fault(const Fault& fault) {
  raise_fault(nb::make_tuple(kFaultNames[static_cast<size_t>(fault.code)], fault.row, fault.column,
                             fault.step, fault.expected, fault.got));
}

nb::list to_arrays(const Plan& plan, std::vector<Column>&& columns) {
  size_t bytes = 0;
  for (const Column& column : columns) bytes += column.values.size();
  std::optional<SmallArrays> together;
  if (bytes < kSmallBatch) together.emplace();
  const auto convert = [&](Cell cell, Buffer&& values, bool is_there) -> nb::object {
    if (!is_there) return nb::none();
    return together ? together->add(cell, std::move(values)) : to_array(cell, std::move(values));
  };
  nb::list result;
  for (size_t c = 0; c < columns.size(); ++c) {
    const ColumnSpec& spec = plan.columns()[c];
    Column& column = columns[c];
    const bool has_splits = spec.layout != Layout::kFixed;
    const bool is_nested = spec.layout == Layout::kNestedSteps;
    result.append(
        nb::make_tuple(convert(spec.cell, std::move(column.values), true),
                       convert(Cell::kInt64, std::move(column.splits), has_splits),
                       convert(Cell::kInt64, std::move(column.inner_splits), is_nested),
                       convert(Cell::kBool, std::move(column.present), spec.is_optional)));
  }
  return result;
}

void bind_parsing(nb::module_& module) {
  nb::enum_<Kind>(module, "Kind")
      .value("UNSET", Kind::kUnset)
      .value("BYTES", Kind::kBytes)
      .value("FLOAT", Kind::kFloat)
      .value("INT64", Kind::kInt64);
  nb::enum_<Layout>(module, "Layout")
      .value("FIXED", Layout::kFixed)
      .value("VARIABLE", Layout::kVariable)
      .value("STEPS", Layout::kSteps)
      .value("NESTED_STEPS", Layout::kNestedSteps);
  nb::enum_<Cell>(module, "Cell")
      .value("BOOL", Cell::kBool)
      .value("INT8", Cell::kInt8)
      .value("INT16", Cell::kInt16)
      .value("INT32", Cell::kInt32)
      .value("INT64", Cell::kInt64)
      .value("UINT8", Cell::kUint8)
      .value("UINT16", Cell::kUint16)
      .value("UINT32", Cell::kUint32)
      .value("UINT64", Cell::kUint64)
      .value("FLOAT32", Cell::kFloat32)
      .value("SLICE", Cell::kSlice)
      .value("RAW", Cell::kRaw);
  nb::class_<ColumnSpec>(module, "ColumnSpec")
      .def("__init__", make_spec, nb::arg("key"), nb::arg("kind"), nb::arg("layout"),
           nb::arg("cell"), nb::arg("unit"), nb::arg("is_text"), nb::arg("is_optional"),
           nb::arg("default_value"));
  nb::class_<Plan>(module, "Plan")
      .def(nb::init<std::vector<ColumnSpec>>(), nb::arg("columns"))
      .def("parse", parse, nb::arg("buffer"), nb::arg("starts"), nb::arg("lengths"),
           nb::arg("threads"));
  module.def("take_strings", take_strings, nb::arg("buffer"), nb::arg("slices"),
             nb::arg("is_text"));
  nb::class_<Discovery>(module, "Discovery")
      .def(nb::init<>())
      .def("add", add_records, nb::arg("buffer"), nb::arg("starts"), nb::arg("lengths"))
      .def_prop_ro("records", &Discovery::records)
      .def_prop_ro("with_unknown_fields", &Discovery::with_unknown_fields)
      .def_prop_ro("context", [](const Discovery& d) { return features_found(d.context()); })
      .def_prop_ro("lists", [](const Discovery& d) { return features_found(d.lists()); });
}

}  // namespace datum::python
