#include "tensors.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "flux/error.h"
#include "flux/world.h"

namespace flux::python {
namespace {

[[noreturn]] void refuse(std::string_view what, std::string const& why) {
  throw Error(ErrorKind::kInvalid, fmt::format("{} {}", what, why));
}

std::string place(int device) { return device == kHostMemory ? "host memory" : fmt::format("cuda:{}", device); }

void require_device(std::string_view what, int given, int wanted) {
  if (given != wanted)
    refuse(what, fmt::format("lies in {}; this world's operators take tensors in {}", place(given), place(wanted)));
}

// Shape and strides, in elements, of one or two dimensions.
Tensor matrix_of(std::string_view what, void* data, DType dtype, size_t dimensions, int64_t const* sizes,
                 int64_t const* strides) {
  if (dimensions != 1 && dimensions != 2)
    refuse(what, fmt::format("has {} dimensions; a matrix [rows, columns] or a vector is needed", dimensions));
  Tensor t;
  t.data = data, t.dtype = dtype;
  t.rows = dimensions == 2 ? sizes[0] : 1;
  t.columns = sizes[dimensions - 1];
  t.stride = dimensions == 2 && t.rows > 1 ? strides[0] : t.columns;
  if (t.columns > 1 && t.rows > 0 && strides[dimensions - 1] != 1)
    refuse(what, fmt::format("has elements of a row {} apart; they must lie side by side: pass a contiguous tensor",
                             strides[dimensions - 1]));
  return t;
}

// torch's dtypes are single objects: each is read once, then known by its address.
DType torch_dtype(std::string_view what, nb::handle dtype) {
  static std::vector<std::pair<PyObject*, DType>> known;
  for (auto const& [object, value] : known)
    if (object == dtype.ptr()) return value;
  std::string const text = nb::str(dtype).c_str();
  for (auto [word, value] : {std::pair{"torch.float64", DType::kF64},
                             {"torch.float32", DType::kF32},
                             {"torch.float16", DType::kF16},
                             {"torch.bfloat16", DType::kBF16}})
    if (text == word) {
      dtype.inc_ref();
      known.emplace_back(dtype.ptr(), value);
      return value;
    }
  refuse(what, fmt::format("is {}; allowed are float64, float32, float16 and bfloat16", text));
}

Tensor of_torch(nb::handle object, std::string_view what, int device) {
  bool const on_gpu = nb::cast<bool>(object.attr("is_cuda"));
  if (!on_gpu && !nb::cast<bool>(object.attr("is_cpu"))) {
    nb::object const given = object.attr("device");
    refuse(what, fmt::format("is on {}; this world's operators take tensors in {}", nb::str(nb::handle(given)).c_str(),
                             place(device)));
  }
  require_device(what, on_gpu ? nb::cast<int>(object.attr("get_device")()) : kHostMemory, device);
  int64_t sizes[2] = {}, strides[2] = {};
  nb::object const size = object.attr("shape"), stride = object.attr("stride")();
  size_t const dimensions = nb::len(size);
  for (size_t d = 0; d < dimensions && d < 2; ++d)
    sizes[d] = nb::cast<int64_t>(size[d]), strides[d] = nb::cast<int64_t>(stride[d]);
  auto* const data = reinterpret_cast<void*>(nb::cast<uintptr_t>(object.attr("data_ptr")()));
  return matrix_of(what, data, torch_dtype(what, object.attr("dtype")), dimensions, sizes, strides);
}

DType dlpack_dtype(std::string_view what, nb::dlpack::dtype dtype) {
  auto const code = static_cast<nb::dlpack::dtype_code>(dtype.code);
  if (dtype.lanes == 1 && code == nb::dlpack::dtype_code::Float) {
    if (dtype.bits == 64) return DType::kF64;
    if (dtype.bits == 32) return DType::kF32;
    if (dtype.bits == 16) return DType::kF16;
  }
  if (dtype.lanes == 1 && code == nb::dlpack::dtype_code::Bfloat && dtype.bits == 16) return DType::kBF16;
  constexpr std::string_view kNames[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  refuse(what, fmt::format("is {}{}; allowed are float64, float32, float16 and bfloat16",
                           dtype.code < std::size(kNames) ? kNames[dtype.code] : "of an unknown type ", dtype.bits));
}

std::string text_of(nb::object const& object) { return nb::str(object).c_str(); }

Operand of_dlpack(nb::handle object, std::string_view what, int device, Access access, Stream stream) {
  nb::object given = nb::borrow(object);
  // NumPy holds bfloat16 (of ml_dtypes) and does not hand it over: as integers of that size it does.
  std::string const library = text_of(object.type().attr("__module__"));
  bool const as_integers =
      library == "numpy" && nb::hasattr(object, "view") && text_of(object.attr("dtype")) == "bfloat16";
  if (as_integers) given = object.attr("view")("uint16");
  if (access == Access::kWrite && library.starts_with("jax"))
    refuse(what, "is an array of JAX, which may not be written to; pass one of NumPy or CuPy");
  // The producer orders its own stream before ours, which costs nothing where they are the same. 1: CUDA's default.
  if (device != kHostMemory && nb::hasattr(object, "__dlpack_device__") &&
      nb::cast<int>(object.attr("__dlpack_device__")()[0]) == nb::device::cuda::value)
    given = object.attr("__dlpack__")(nb::arg("stream") = stream ? reinterpret_cast<uintptr_t>(stream) : uintptr_t{1});
  Operand o;
  auto const read = [&]<class... A>(nb::ndarray<A...>) {
    nb::ndarray<A...> array;
    if (!nb::try_cast(given, array)) return false;
    o.held = nb::ndarray<>(array.handle());
    return true;
  };
  if (!(access == Access::kRead ? read(nb::ndarray<nb::ro>()) : read(nb::ndarray<>())))
    refuse(what, fmt::format("is {}{}; a {}tensor of torch or one that speaks DLPack is needed",
                             access == Access::kWrite ? "read-only or " : "", nb::str(object.type()).c_str(),
                             access == Access::kWrite ? "writable " : ""));
  DType const dtype = as_integers ? DType::kBF16 : dlpack_dtype(what, o.held.dtype());
  int const type = o.held.device_type();
  bool const on_gpu = type == nb::device::cuda::value;
  if (!on_gpu && type != nb::device::cpu::value)
    refuse(what, fmt::format("lies on a device of DLPack's type {}; allowed are host memory and CUDA", type));
  require_device(what, on_gpu ? o.held.device_id() : kHostMemory, device);
  int64_t sizes[2] = {}, strides[2] = {};
  for (size_t d = 0; d < o.held.ndim() && d < 2; ++d)
    sizes[d] = static_cast<int64_t>(o.held.shape(d)), strides[d] = o.held.stride(d);
  o.tensor =
      matrix_of(what, const_cast<void*>(static_cast<void const*>(o.held.data())), dtype, o.held.ndim(), sizes, strides);
  return o;
}

}  // namespace

Operand operand(nb::handle object, std::string_view what, int device, Access access, Stream stream) {
  if (object.is_none()) return {};
  // A torch tensor, parameters that require gradients among them; but no subclass that has no memory.
  if (nb::hasattr(object, "data_ptr")) return {of_torch(object, what, device), {}};
  return of_dlpack(object, what, device, access, stream);
}

}  // namespace flux::python
