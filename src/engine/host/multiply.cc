#include "engine/host/multiply.h"

#include <Eigen/Core>
#include <unsupported/Eigen/SpecialFunctions>

namespace flux::host {

using Eigen::Dynamic;
using Eigen::Map;
using Eigen::OuterStride;

template <class T>
using RowMajor = Eigen::Matrix<T, Dynamic, Dynamic, Eigen::RowMajor>;

template <class T>
void multiply_add(Operand<T> a, Operand<T> b, WeightLayout layout, T* c, int64_t c_stride, int64_t m, int64_t n,
                  int64_t k) {
  if (m == 0 || n == 0 || k == 0) return;
  Map<RowMajor<T> const, 0, OuterStride<>> const left(a.data, m, k, OuterStride<>(a.stride));
  Map<RowMajor<T>, 0, OuterStride<>> out(c, m, n, OuterStride<>(c_stride));
  if (layout == WeightLayout::kOutIn) {
    Map<RowMajor<T> const, 0, OuterStride<>> const right(b.data, n, k, OuterStride<>(b.stride));
    out.noalias() += left * right.transpose();
  } else {
    Map<RowMajor<T> const, 0, OuterStride<>> const right(b.data, k, n, OuterStride<>(b.stride));
    out.noalias() += left * right;
  }
}

template <class T>
void activate(Activation activation, T* data, T const* up, int64_t count) {
  Map<Eigen::Array<T, Dynamic, 1>> x(data, count);
  T const half = T(0.5);
  switch (activation) {
    case Activation::kNone: break;
    case Activation::kRelu: x = x.max(T(0)); break;
    case Activation::kGelu: x = half * x * (T(1) + (x * T(0.70710678118654752440)).erf()); break;
    case Activation::kGeluTanh:
      x = half * x * (T(1) + (T(0.79788456080286535588) * (x + T(0.044715) * x.cube())).tanh());
      break;
    case Activation::kQuickGelu: x = x / (T(1) + (T(-1.702) * x).exp()); break;
    case Activation::kSilu: x = x / (T(1) + (-x).exp()); break;
  }
  if (up) x *= Map<Eigen::Array<T, Dynamic, 1> const>(up, count);
}

template void multiply_add(Operand<float>, Operand<float>, WeightLayout, float*, int64_t, int64_t, int64_t, int64_t);
template void multiply_add(Operand<double>, Operand<double>, WeightLayout, double*, int64_t, int64_t, int64_t, int64_t);
template void activate(Activation, float*, float const*, int64_t);
template void activate(Activation, double*, double const*, int64_t);

}  // namespace flux::host
