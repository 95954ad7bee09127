#include "engine/host/element.h"

#include <Eigen/Core>
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "engine/host/float8.h"

namespace flux::host {
namespace {

// Rounded to nearest even, and to the nearest that there is.
template <class T>
int8_t stored(T x, int8_t) {
  return static_cast<int8_t>(std::clamp(std::nearbyint(x), T(-128), T(127)));
}
template <class T>
Float8 stored(T x, Float8) {
  return Float8::nearest(static_cast<double>(x));
}

template <class S, class T>
void cast(S const* from, T* to, int64_t count) {
  using Eigen::Array;
  using Eigen::Dynamic;
  using Eigen::Map;
  if constexpr (std::is_same_v<S, T>) {
    std::memcpy(to, from, count * sizeof(T));
  } else if constexpr (sizeof(S) == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[i]);
  } else if constexpr (sizeof(T) == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = stored(from[i], T{});
  } else {
    Map<Array<T, Dynamic, 1>>(to, count) = Map<Array<S, Dynamic, 1> const>(from, count).template cast<T>();
  }
}

// Calls f with a null pointer of the stored type.
template <class F>
void with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF64: return f(static_cast<double*>(nullptr));
    case DType::kF32: return f(static_cast<float*>(nullptr));
    case DType::kF16: return f(static_cast<Eigen::half*>(nullptr));
    case DType::kBF16: return f(static_cast<Eigen::bfloat16*>(nullptr));
    case DType::kI8: return f(static_cast<int8_t*>(nullptr));
    case DType::kF8: return f(static_cast<Float8*>(nullptr));
  }
}

template <class S, class T>
void add_each_atomically(T const* from, void* to, int64_t count) {
  using Bits = std::conditional_t<sizeof(S) == 2, uint16_t, std::conditional_t<sizeof(S) == 4, uint32_t, uint64_t>>;
  auto* at = static_cast<Bits*>(to);
  for (int64_t i = 0; i < count; ++i) {
    std::atomic_ref<Bits> cell(at[i]);
    Bits seen = cell.load(std::memory_order_relaxed), wanted;
    do {
      wanted = std::bit_cast<Bits>(static_cast<S>(static_cast<T>(std::bit_cast<S>(seen)) + from[i]));
    } while (!cell.compare_exchange_weak(seen, wanted, std::memory_order_relaxed));
  }
}

}  // namespace

template <class T>
void widen(void const* from, DType dtype, T* to, int64_t count) {
  with_type(dtype, [&]<class S>(S*) { cast(static_cast<S const*>(from), to, count); });
}

template <class T>
void narrow(T const* from, void* to, DType dtype, int64_t count) {
  with_type(dtype, [&]<class S>(S*) { cast(from, static_cast<S*>(to), count); });
}

template <class T>
void add_atomically(T const* from, void* to, DType dtype, int64_t count) {
  with_type(dtype, [&]<class S>(S*) {
    if constexpr (sizeof(S) > 1) add_each_atomically<S>(from, to, count);  // partial sums have more
  });
}

template void widen(void const*, DType, float*, int64_t);
template void widen(void const*, DType, double*, int64_t);
template void narrow(float const*, void*, DType, int64_t);
template void narrow(double const*, void*, DType, int64_t);
template void add_atomically(float const*, void*, DType, int64_t);
template void add_atomically(double const*, void*, DType, int64_t);

}  // namespace flux::host
