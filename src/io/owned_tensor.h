#pragma once
#include <memory>

#include "flux/tensor.h"

namespace flux {

/// A contiguous matrix with memory of its own, aligned to 64 bytes, zero at first. The view and the memory stay where
/// they are when the object is moved.
class OwnedTensor {
 public:
  OwnedTensor() = default;
  /// Throws Error{kInvalid} if a size is negative or the bytes overflow int64.
  OwnedTensor(DType dtype, int64_t rows, int64_t columns);

  /// `data` is never null, also for an empty matrix.
  Tensor const& view() const { return view_; }
  operator Tensor const&() const { return view_; }

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Free> memory_;
  Tensor view_;
};

/// A contiguous, aligned copy. The source may be strided and unaligned.
OwnedTensor copy_of(Tensor const& source);

/// Whether every element lies at a multiple of its size. Views into files need not: check, and use copy_of where not.
bool aligned(Tensor const& tensor);

}  // namespace flux
