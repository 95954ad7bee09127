#include "engine/host/launch.h"

#include "engine/host/element.h"

namespace flux::host {

void Launch::set(Linear const& l, int rank) {
  weight = l.weight, up = l.up, bias = l.bias, up_bias = l.up_bias;
  layout = l.layout, activation = l.activation, scales = l.scales, up_scale = l.up_scale;
  c.base[rank] = static_cast<std::byte*>(l.out.data);
  c_dtype = l.out.dtype, c_stride = l.out.stride, columns = l.out.columns;
  if (!l.gated || l.up) return;
  // Gate and up lie in one weight: the same operand seen from its middle.
  bool const out_in = layout == WeightLayout::kOutIn;
  up = weight;
  up.data = element(weight.data, weight.dtype, out_in ? columns * weight.stride : columns);
  (out_in ? weight.rows : weight.columns) = columns;
  (out_in ? up.rows : up.columns) = columns;
  auto split = [&](Tensor& first, Tensor& second) {
    if (!first) return;
    first.columns = columns;
    second = first;
    second.data = element(first.data, first.dtype, columns);
  };
  split(bias, up_bias), split(scales.columns, up_scale);
}

}  // namespace flux::host
