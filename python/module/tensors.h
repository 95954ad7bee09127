#pragma once
// Tensors of Python as FLUX sees them: torch's by their own methods, all others by DLPack.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string_view>

#include "flux/tensor.h"
#include "flux/world.h"

namespace flux::python {

namespace nb = nanobind;

/// Where a world's operands lie: the index of its GPU, or kHostMemory.
inline constexpr int kHostMemory = -1;

enum class Access { kRead, kWrite };

/// A borrowed matrix. What DLPack handed over is held as long as this lives; torch's memory by who calls.
struct Operand {
  Tensor tensor;
  nb::ndarray<> held;
};

/// `object` as a matrix on `device`: one or two dimensions, elements of a row side by side; a vector is one row. None
/// is no tensor. By DLPack of GPUs its producer makes it ready for `stream`. Throws Error{kInvalid} that begins with
/// `what`.
Operand operand(nb::handle object, std::string_view what, int device, Access access, Stream stream);

}  // namespace flux::python
