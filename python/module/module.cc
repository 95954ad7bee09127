// The module flux._flux: thin, all else is in libflux and in Python.
#include <nanobind/nanobind.h>

#include "world.h"

namespace flux::python {

/// Each kind of flux::Error is a class of flux.errors.
void bind_errors(nb::module_&) {
  nb::register_exception_translator([](std::exception_ptr const& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (Error const& error) {
      constexpr char const* kClasses[] = {"InvalidError", "UnsupportedError", "DeviceError", "TimeoutError",
                                          "InternalError"};
      nb::object const type = nb::module_::import_("flux.errors").attr(kClasses[static_cast<int>(error.kind())]);
      PyErr_SetString(type.ptr(), error.what());
    }
  });
}

}  // namespace flux::python

NB_MODULE(_flux, module) {
  using namespace flux::python;
  nb::set_leak_warnings(false);  // worlds that a program keeps to its end are no leak
  bind_errors(module), bind_world(module), bind_operators(module), bind_planning(module);
}
