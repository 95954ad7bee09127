#pragma once
// A world as Python holds it.
#include <memory>

#include "tensors.h"
#include "world/bootstrap.h"

namespace flux::python {

struct PythonWorld {
  std::shared_ptr<MeetingPoint> point;  // of ranks that are threads
  std::unique_ptr<World> world;
  int device = kHostMemory;

  /// This rank failed for a reason of its own: nobody waits for it any more.
  void fail() const;
};

void bind_errors(nb::module_& module);
void bind_world(nb::module_& module);
void bind_operators(nb::module_& module);
void bind_planning(nb::module_& module);

}  // namespace flux::python
