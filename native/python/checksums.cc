// Bindings of crc32c.h.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "../crc32c.h"
#include "bindings.h"

namespace datum::python {
namespace {

uint32_t checksum(nb::handle data, uint32_t crc, const std::optional<std::string>& name) {
  Crc32cFunction extend = nullptr;
  for (const Crc32cImplementation& implementation : crc32c_implementations()) {
    if (extend == nullptr &&
        name.value_or(std::string(implementation.name)) == implementation.name) {
      extend = implementation.extend;
    }
  }
  if (extend == nullptr) throw std::invalid_argument("no CRC implementation " + *name);
  const BufferView buffer(data);
  nb::gil_scoped_release release;
  return extend(crc, buffer.bytes().data(), buffer.bytes().size(), nullptr);
}

std::vector<std::string> implementation_names() {
  std::vector<std::string> names;
  for (const Crc32cImplementation& implementation : crc32c_implementations()) {
    names.emplace_back(implementation.name);
  }
  return names;
}

}  // namespace

void bind_checksums(nb::module_& module) {
  module.def("crc32c", checksum, nb::arg("data"), nb::arg("crc") = 0,
             nb::arg("implementation") = nb::none());
  module.def("crc32c_implementations", implementation_names);
  module.def("mask_crc", mask_crc, nb::arg("crc"));
}

}  // namespace datum::python
