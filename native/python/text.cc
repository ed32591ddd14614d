// Bindings of csv_columns.h.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "../csv_columns.h"
#include "bindings.h"

namespace datum::python {
namespace {

using TextInput = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr size_t kMaxTextBytes = size_t{1} << 31;  // offsets within it are 32 bits
constexpr const char* kFaults[] = {"fields", "nul", "text", "quote", "length"};
constexpr const char* kTypes[] = {"empty", "bool", "int64", "float64", "str"};

// Keeps the text alive as long as its columns.
struct CsvText {
  TextInput text;
  CsvColumns columns;
};

void make_csv_text(CsvText* self, const TextInput& text, char delimiter, size_t columns,
                   bool is_last, size_t max_row_bytes, std::vector<std::string> absent,
                   std::vector<std::string> blank, size_t threads, char comment, char decimal) {
  if (text.shape(0) >= kMaxTextBytes || max_row_bytes >= kMaxTextBytes || threads == 0) {
    throw std::invalid_argument("expected less than 2 GiB of text, and a thread");
  }
  const CsvOptions options{.delimiter = static_cast<uint8_t>(delimiter),
                           .comment = static_cast<uint8_t>(comment),
                           .columns = columns,
                           .is_last = is_last,
                           .max_row_bytes = max_row_bytes,
                           .threads = threads};
  CsvRows rows;
  {
    nb::gil_scoped_release release;
    rows = read_csv_rows({text.data(), text.shape(0)}, options);
  }
  CsvReading reading{CsvWords(std::move(absent)), CsvWords(std::move(blank)),
                     static_cast<uint8_t>(decimal)};
  new (self) CsvText{text, CsvColumns(text.data(), std::move(rows), std::move(reading), threads)};
}

nb::list header(const CsvText& self) {
  nb::list names;
  for (const std::string& name : self.columns.rows().header) {
    names.append(nb::bytes(name.data(), name.size()));
  }
  return names;
}

nb::list bad_rows(const CsvText& self) {
  nb::list found;
  for (const CsvBadRow& bad : self.columns.rows().bad) {
    found.append(nb::make_tuple(bad.record, bad.offset, kFaults[static_cast<size_t>(bad.fault)],
                                bad.fields));
  }
  return found;
}

CsvType type_of(const std::string& name) {
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (name == kTypes[i]) return static_cast<CsvType>(i);
  }
  throw std::invalid_argument("no such type");
}

// Returns (seen, regular, odd, first odd row, codes, bad rows) for each column.
nb::list look(CsvText& self, const std::vector<size_t>& columns,
              const std::vector<std::string>& wanted) {
  for (const size_t column : columns) {
    if (column >= self.columns.rows().columns) throw std::out_of_range("no such column");
  }
  std::vector<CsvType> types;
  for (const std::string& name : wanted) types.push_back(type_of(name));
  std::vector<CsvLook> looks;
  {
    nb::gil_scoped_release release;
    looks = self.columns.look(columns, types);
  }
  nb::list found;
  for (const CsvLook& one : looks) {
    found.append(nb::make_tuple(one.seen, one.regular, one.odd, one.first_odd, one.codes, one.bad));
  }
  return found;
}

nb::bytes field(const CsvText& self, size_t row, size_t column) {
  const std::string found = self.columns.field(row, column);
  return nb::bytes(found.data(), found.size());
}

nb::tuple take(CsvText& self, size_t column, uint32_t seen) {
  if (column >= self.columns.rows().columns) throw std::out_of_range("no such column");
  CsvColumn taken;
  {
    nb::gil_scoped_release release;
    taken = self.columns.take(column, seen);
  }
  const char* type = kTypes[static_cast<size_t>(taken.type)];
  const bool has_absent = taken.present.size() != 0;
  const Cell cell = taken.type == CsvType::kBool ? Cell::kBool : Cell::kInt64;
  nb::object present = nb::none();
  if (has_absent) present = to_array(Cell::kBool, std::move(taken.present));
  return nb::make_tuple(type, to_array(cell, std::move(taken.values)), present);
}

size_t count_lines(const TextInput& text, size_t begin, size_t end) {
  if (begin > end || end > text.shape(0)) throw std::out_of_range("beyond the text");
  nb::gil_scoped_release release;
  return count_csv_lines({text.data() + begin, end - begin});
}

}  // namespace

void bind_text(nb::module_& module) {
  nb::class_<CsvText>(module, "CsvText")
      .def("__init__", make_csv_text, nb::arg("text"), nb::arg("delimiter"), nb::arg("columns"),
           nb::arg("is_last"), nb::arg("max_row_bytes"), nb::arg("absent"), nb::arg("blank"),
           nb::arg("threads"), nb::arg("comment") = '\0', nb::arg("decimal") = '.')
      .def_prop_ro("header", header)
      .def_prop_ro("rows", [](const CsvText& self) { return self.columns.rows().rows; })
      .def_prop_ro("end", [](const CsvText& self) { return self.columns.rows().end; })
      .def_prop_ro("bad_rows", bad_rows)
      .def("look", look, nb::arg("columns"), nb::arg("wanted"))
      .def(
          "offset",
          [](const CsvText& self, size_t row, size_t column) {
            return self.columns.offset(row, column);
          },
          nb::arg("row"), nb::arg("column"))
      .def("field", field, nb::arg("row"), nb::arg("column"))
      .def("take", take, nb::arg("column"), nb::arg("seen"));
  module.def("count_lines", count_lines, nb::arg("text"), nb::arg("begin"), nb::arg("end"));
  module.def(
      "csv_type", [](uint32_t seen) { return kTypes[static_cast<size_t>(csv_type_of(seen))]; },
      nb::arg("seen"));
}

}  // namespace datum::python
