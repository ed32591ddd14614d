// Bindings of summary.h.
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "../parallel.h"
#include "../summary.h"
#include "column_input.h"

namespace datum::python {
namespace {

nb::object as_sizes(const SizeRange& range) {
  if (range.count == 0) return nb::none();
  return nb::make_tuple(range.count, range.lowest, range.highest, range.total);
}

// Returns counts of finite, NaN and infinite numbers, lowest, highest, and the total.
nb::object as_numbers(const NumberRange& range, Element element) {
  const uint64_t seen = range.count + range.not_numbers + range.infinite;
  if (seen == 0) return nb::none();
  const bool is_float = element >= Element::kFloat16 && element <= Element::kFloat64;
  nb::object lowest = nb::none();
  nb::object highest = nb::none();
  nb::object total = nb::cast(0);
  if (range.count > 0 && is_float) {
    lowest = nb::cast(range.float_lowest);
    highest = nb::cast(range.float_highest);
    total = nb::cast(range.float_total);
  } else if (range.count > 0) {
    const bool is_unsigned = element == Element::kUint64;
    lowest = is_unsigned ? nb::cast(range.unsigned_lowest) : nb::cast(range.lowest);
    highest = is_unsigned ? nb::cast(range.unsigned_highest) : nb::cast(range.highest);
    const nb::object high = nb::cast(range.total_high) * nb::cast(int64_t{1} << 32);
    total = high + nb::cast(range.total_low);
  }
  return nb::make_tuple(range.count, range.not_numbers, range.infinite, lowest, highest, total);
}

nb::object as_counts(const Summary& summary, Element element) {
  if (!summary.has_counts) return nb::none();
  nb::dict counts;
  for (const auto& [value, count] : summary.integer_counts) {
    nb::object key = nb::cast(value);
    if (element == Element::kBool) key = nb::cast(value != 0);
    if (element == Element::kUint64) key = nb::cast(static_cast<uint64_t>(value));
    counts[key] = count;
  }
  for (const auto& [value, count] : summary.string_counts) {
    const auto* data = reinterpret_cast<const char*>(value.data());
    counts[nb::str(data, value.size())] = count;
  }
  return counts;
}

// Returns (missing, lengths, bytes, numbers, counts) for each (source, element, whether values are
// counted), with None where there are none.
nb::list summarize_all(nb::list requests, size_t rows, size_t threads) {
  struct Column {
    const ColumnInput* source;
    Element element;
    bool is_counted;
    Summary summary;
  };
  std::vector<Column> columns;
  for (nb::handle item : requests) {
    columns.push_back({&nb::cast<const ColumnInput&>(item[0]),
                       nb::cast<Element>(item[1]),
                       nb::cast<bool>(item[2]),
                       {}});
  }
  {
    nb::gil_scoped_release release;
    std::atomic<size_t> next = 0;
    run_parallel(std::clamp<size_t>(threads, 1, columns.size() + 1), [&](size_t) {
      for (size_t i = next++; i < columns.size(); i = next++) {
        Column& column = columns[i];
        const ColumnSource& source = column.source->column;
        if (!column.source->fits(rows) || check_source(source, rows) != EncodeError::kNone) {
          throw std::invalid_argument("a source does not fit the number of rows");
        }
        const bool is_scalar = source.layout == Layout::kFixed && source.unit == 1;
        const bool is_counted = column.is_counted && is_scalar && source.cell != Cell::kRaw;
        column.summary = summarize(source, column.element, rows, is_counted);
      }
    });
  }
  nb::list found;
  for (const auto& [source, element, is_counted, summary] : columns) {
    found.append(nb::make_tuple(summary.missing, as_sizes(summary.lengths), as_sizes(summary.bytes),
                                as_numbers(summary.numbers, element), as_counts(summary, element)));
  }
  return found;
}

}  // namespace

void bind_summaries(nb::module_& module) {
  module.def("summarize", summarize_all, nb::arg("requests"), nb::arg("rows"), nb::arg("threads"));
}

}  // namespace datum::python
