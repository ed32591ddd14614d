// Bindings of encode.h.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "../elements.h"
#include "../encode.h"
#include "../narrow.h"
#include "column_input.h"

namespace datum::python {
namespace {

using BoolInput = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr const char* kEncodeErrors[] = {"", "splits", "values", "record too large"};

void make_column_input(ColumnInput* self, nb::bytes key, Kind kind, Layout layout, Cell cell,
                       size_t unit) {
  ColumnSource& column = (new (self) ColumnInput())->column;
  column.key.assign(key.c_str(), key.size());
  column.kind = kind;
  column.layout = layout;
  column.cell = cell;
  column.unit = unit;
}

const uint8_t* hold_view(ColumnInput& source, nb::handle object, size_t& size) {
  source.views.push_back(std::make_unique<BufferView>(object));
  const ByteSpan bytes = source.views.back()->bytes();
  size = bytes.size();
  return bytes.data();
}

void set_values(ColumnInput& source, nb::handle object) {
  size_t size;
  source.column.values = hold_view(source, object, size);
  source.column.values_count = size / cell_bytes(source.column.cell);
}

void set_slices(ColumnInput& source, nb::handle object, const Int64Input& slices) {
  size_t size;
  const uint8_t* data = hold_view(source, object, size);
  const auto limit = static_cast<int64_t>(size);
  for (size_t i = 0; i + 1 < slices.shape(0); i += 2) {
    const int64_t start = slices.data()[i];
    const int64_t length = slices.data()[i + 1];
    if (start < 0 || start > limit || length < 0 || length > limit - start) {
      throw std::out_of_range("a slice is outside the buffer");
    }
    source.strings.emplace_back(data + start, static_cast<size_t>(length));
  }
  source.adopt_strings();
}

// Returns the number of the first slice that is not UTF-8, or none.
std::optional<size_t> find_bad_text(nb::handle object, const Int64Input& slices) {
  const BufferView view(object);
  const ByteSpan bytes = view.bytes();
  for (size_t i = 0; i + 1 < slices.shape(0); i += 2) {
    const auto start = static_cast<size_t>(slices.data()[i]);
    const auto length = static_cast<size_t>(slices.data()[i + 1]);
    if (start > bytes.size() || length > bytes.size() - start) {
      throw std::out_of_range("a slice is outside the buffer");
    }
    if (!is_utf8(bytes.subspan(start, length))) return i / 2;
  }
  return std::nullopt;
}

void set_splits(ColumnInput& source, const Int64Input& splits, std::optional<Int64Input> inner) {
  source.splits.assign(splits.data(), splits.data() + splits.shape(0));
  source.column.splits = source.splits.data();
  if (!inner) return;
  size_t size;
  source.column.inner_splits =
      reinterpret_cast<const int64_t*>(hold_view(source, inner->cast(), size));
  source.column.inner_count = size / sizeof(int64_t);
}

void set_present(ColumnInput& source, const BoolInput& present) {
  source.present.assign(present.data(), present.data() + present.shape(0));
  source.column.present = source.present.data();
}

nb::tuple as_framed(Encoded&& encoded) {
  Buffer offsets;
  const size_t bytes = encoded.offsets.size() * sizeof(uint64_t);
  if (bytes > 0) std::memcpy(offsets.extend(bytes), encoded.offsets.data(), bytes);
  return nb::make_tuple(to_array(Cell::kUint8, std::move(encoded.framed)),
                        to_array(Cell::kInt64, std::move(offsets)));
}

// Returns the framed records, and the start of each.
nb::tuple encode(nb::list list, size_t rows, size_t threads) {
  std::vector<ColumnSource> sources;
  for (nb::handle item : list) {
    const auto& source = nb::cast<const ColumnInput&>(item);
    if (!source.fits(rows)) {
      throw std::invalid_argument("`splits` or `present` do not fit the number of rows");
    }
    sources.push_back(source.column);
  }
  Encoded encoded;
  EncodeFault fault;
  {
    nb::gil_scoped_release release;
    fault = encode_records(std::move(sources), rows, threads, encoded);
  }
  if (fault.error != EncodeError::kNone) {
    raise_fault(nb::make_tuple(kEncodeErrors[static_cast<size_t>(fault.error)], fault.row));
  }
  return as_framed(std::move(encoded));
}

// Returns the doubles as float32, whether any changed, and the position of the first that float32
// cannot represent well enough.
nb::tuple narrow_doubles(const nb::ndarray<const double, nb::ndim<1>, nb::c_contig>& doubles) {
  Buffer floats;
  Narrowing found;
  const std::span from(doubles.data(), doubles.shape(0));
  auto* to = reinterpret_cast<float*>(floats.extend(sizeof(float) * from.size()));
  {
    nb::gil_scoped_release release;
    found = narrow(from, to);
  }
  const nb::object at = found.first_wide == kNoneWide ? nb::none() : nb::cast(found.first_wide);
  return nb::make_tuple(to_array(Cell::kFloat32, std::move(floats)), found.is_rounded, at);
}

// Returns the position of the first number that float32 cannot represent well enough.
std::optional<size_t> find_wide_number(nb::handle object, Element element) {
  const BufferView view(object);
  const ByteSpan bytes = view.bytes();
  nb::gil_scoped_release release;
  return with_number(element, [&](auto zero) -> std::optional<size_t> {
    using Number = decltype(zero);
    if constexpr (std::is_arithmetic_v<Number>) {
      const auto* numbers = reinterpret_cast<const Number*>(bytes.data());
      const size_t at = find_wide(std::span(numbers, bytes.size() / sizeof(Number)));
      if (at != kNoneWide) return at;
    }
    return std::nullopt;
  });
}

nb::tuple frame(nb::list payloads) {
  std::vector<ByteSpan> spans;
  spans.reserve(payloads.size());
  for (nb::handle payload : payloads) {
    if (!PyBytes_Check(payload.ptr())) throw nb::type_error("expected bytes");
    spans.emplace_back(reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(payload.ptr())),
                       static_cast<size_t>(PyBytes_GET_SIZE(payload.ptr())));
  }
  Encoded encoded;
  {
    nb::gil_scoped_release release;
    frame_payloads(spans, encoded);
  }
  return as_framed(std::move(encoded));
}

}  // namespace

void bind_encoding(nb::module_& module) {
  nb::class_<ColumnInput>(module, "ColumnInput")
      .def("__init__", make_column_input, nb::arg("key"), nb::arg("kind"), nb::arg("layout"),
           nb::arg("cell"), nb::arg("unit"))
      .def("set_values", set_values, nb::arg("values"))
      .def("set_slices", set_slices, nb::arg("buffer"), nb::arg("slices"))
      .def("set_splits", set_splits, nb::arg("splits"), nb::arg("inner") = nb::none())
      .def("set_present", set_present, nb::arg("present"));
  module.def("find_bad_text", find_bad_text, nb::arg("buffer"), nb::arg("slices"));
  module.def("encode", encode, nb::arg("sources"), nb::arg("rows"), nb::arg("threads"));
  module.def("narrow", narrow_doubles, nb::arg("doubles"));
  module.def("find_wide", find_wide_number, nb::arg("numbers"), nb::arg("element"));
  module.def("frame", frame, nb::arg("payloads"));
}

}  // namespace datum::python
