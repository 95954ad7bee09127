#include "io/owned_tensor.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "io/shape.h"

namespace flux {

void OwnedTensor::Free::operator()(void* memory) const { std::free(memory); }

OwnedTensor::OwnedTensor(DType dtype, int64_t rows, int64_t columns) {
  constexpr int64_t kLine = 64;
  auto const bytes = checked_product({rows, columns, size_of(dtype)});
  if (!bytes || *bytes > INT64_MAX - kLine)
    throw Error(ErrorKind::kInvalid, "a matrix of " + shape_text({rows, columns}) + " elements does not fit in memory");
  size_t const room = static_cast<size_t>((*bytes + kLine) / kLine * kLine);  // never zero
  memory_.reset(std::aligned_alloc(kLine, room));
  if (!memory_) throw std::bad_alloc();
  std::memset(memory_.get(), 0, room);
  view_ = matrix(memory_.get(), dtype, rows, columns);
}

OwnedTensor copy_of(Tensor const& source) {
  OwnedTensor copy(source.dtype, source.rows, source.columns);
  size_t const row_bytes = static_cast<size_t>(source.columns * size_of(source.dtype));
  for (int64_t r = 0; r < source.rows && row_bytes > 0; ++r) std::memcpy(copy.view().row(r), source.row(r), row_bytes);
  return copy;
}

bool aligned(Tensor const& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data) % static_cast<uintptr_t>(size_of(tensor.dtype)) == 0;
}

}  // namespace flux
