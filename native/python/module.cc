// The extension module `datum._core`.
#include "bindings.h"

namespace datum::python {
namespace {

nb::handle fault_type;

void bind_fault(nb::module_& module) {
  fault_type = PyErr_NewException("datum._core.Fault", PyExc_Exception, nullptr);
  module.attr("Fault") = fault_type;
}

}  // namespace

void raise_fault(nb::tuple arguments) {
  PyErr_SetObject(fault_type.ptr(), arguments.ptr());
  throw nb::python_error();
}

}  // namespace datum::python

NB_MODULE(_core, module) {
  module.doc() = "Datum's native core: TFRecord framing and tf.train.Example, without Python.";
  // Objects cached by Python may outlive the interpreter; that is not a leak.
  nanobind::set_leak_warnings(false);
  datum::python::import_numpy();
  datum::python::bind_fault(module);
  datum::python::bind_arrays(module);
  datum::python::bind_checksums(module);
  datum::python::bind_files(module);
  datum::python::bind_framing(module);
  datum::python::bind_parsing(module);
  datum::python::bind_encoding(module);
  datum::python::bind_row_collector(module);
  datum::python::bind_summaries(module);
  datum::python::bind_text(module);
  datum::python::bind_gathering(module);
  datum::python::bind_images(module);
  datum::python::bind_snapshot(module);
  datum::python::bind_loading(module);
}
