// The three operators: Python's tensors in, a call of the library without the interpreter's lock.
#include <nanobind/stl/string.h>

#include <chrono>

#include "flux/op.h"
#include "world.h"

namespace flux::python {
namespace {

nb::dict bytes_of(MemoryNeed const& need) {
  nb::dict told;
  told["buffers"] = need.buffers, told["buffer"] = need.buffer, told["scratch"] = need.scratch;
  told["own"] = need.own, told["packets"] = need.packets, told["total"] = need.total();
  return told;
}

AllGatherGemm::Shape gather_shape(int64_t max_m, int64_t k, std::string const& dtype, int64_t n, bool in_out,
                                  bool gated) {
  return {max_m, k, parse_dtype(dtype), n, in_out ? WeightLayout::kInOut : WeightLayout::kOutIn, gated};
}
GemmReduceScatter::Shape sum_shape(int64_t max_m, int64_t n, std::string const& dtype, int64_t k, bool in_out) {
  return {max_m, n, parse_dtype(dtype), k, in_out ? WeightLayout::kInOut : WeightLayout::kOutIn};
}
Stream stream_of(uintptr_t handle) { return reinterpret_cast<Stream>(handle); }

template <class Op>
struct Operator {
  Op op;
  int device;
};

/// Makes a call so many times, without the interpreter's lock; the microseconds that they took, for measuring what
/// Python adds to one.
template <class Call>
double microseconds_of(int64_t times, Call&& call) {
  nb::gil_scoped_release const free;
  auto const start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < times; ++i) call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

void bind_gather(nb::module_& module) {
  using Gather = Operator<AllGatherGemm>;
  nb::class_<Gather>(module, "AllGatherGemm")
      .def(
          "__init__",
          [](Gather* self, PythonWorld& w, int64_t max_m, int64_t k, std::string const& dtype, int64_t n, bool in_out,
             bool gated, std::string const& plan) {
            auto const shape = gather_shape(max_m, k, dtype, n, in_out, gated);
            nb::gil_scoped_release const free;
            new (self) Gather{{*w.world, shape, parse_plan(plan)}, w.device};
          },
          nb::keep_alive<1, 2>())
      .def_static("memory",
                  [](PythonWorld& w, int64_t max_m, int64_t k, std::string const& dtype, int64_t n, bool in_out,
                     bool gated, std::string const& plan) {
                    return bytes_of(AllGatherGemm::memory(*w.world, gather_shape(max_m, k, dtype, n, in_out, gated),
                                                          parse_plan(plan)));
                  })
      .def_prop_ro("plan", [](Gather const& o) { return to_string(o.op.plan()); })
      .def(
          "run",
          [](Gather& o, int64_t m, nb::handle x, nb::handle weight, nb::handle out, nb::handle bias,
             nb::handle gathered, nb::handle up, nb::handle up_bias, std::string const& activation, bool gated,
             bool in_out, uintptr_t stream, int64_t times) {
            Stream const s = stream_of(stream);
            auto const read = [&](nb::handle t, char const* what) {
              return operand(t, what, o.device, Access::kRead, s);
            };
            auto const write = [&](nb::handle t, char const* what) {
              return operand(t, what, o.device, Access::kWrite, s);
            };
            Operand const in = read(x, "x"), w = read(weight, "the weight"), b = read(bias, "the bias"),
                          u = read(up, "the second weight"), ub = read(up_bias, "the second bias"),
                          y = write(out, "the output"), g = write(gathered, "the gathered output");
            Linear linear;
            linear.weight = w.tensor, linear.out = y.tensor, linear.bias = b.tensor;
            linear.layout = in_out ? WeightLayout::kInOut : WeightLayout::kOutIn;
            linear.activation = parse_activation(activation), linear.gated = gated;
            linear.up = u.tensor, linear.up_bias = ub.tensor;
            // Without a weight the rows are gathered, and that is all.
            std::span const linears(&linear, weight.is_none() ? 0 : 1);
            return microseconds_of(times, [&] { o.op.run(m, in.tensor, linears, g.tensor, s); });
          },
          nb::arg("m"), nb::arg("x"), nb::arg("weight").none(), nb::arg("out").none(), nb::arg("bias").none(),
          nb::arg("gathered").none(), nb::arg("up").none(), nb::arg("up_bias").none(), nb::arg("activation"),
          nb::arg("gated"), nb::arg("in_out"), nb::arg("stream"), nb::arg("times") = 1);
}

template <class Op>
void bind_sum(nb::module_& module, char const* name) {
  using Sum = Operator<Op>;
  nb::class_<Sum>(module, name)
      .def(
          "__init__",
          [](Sum* self, PythonWorld& w, int64_t max_m, int64_t n, std::string const& dtype, int64_t k, bool in_out,
             std::string const& plan) {
            auto const shape = sum_shape(max_m, n, dtype, k, in_out);
            nb::gil_scoped_release const free;
            new (self) Sum{{*w.world, shape, parse_plan(plan)}, w.device};
          },
          nb::keep_alive<1, 2>())
      .def_static("memory",
                  [](PythonWorld& w, int64_t max_m, int64_t n, std::string const& dtype, int64_t k, bool in_out,
                     std::string const& plan) {
                    return bytes_of(Op::memory(*w.world, sum_shape(max_m, n, dtype, k, in_out), parse_plan(plan)));
                  })
      .def_prop_ro("plan", [](Sum const& o) { return to_string(o.op.plan()); })
      .def(
          "run",
          [](Sum& o, int64_t m, nb::handle x, nb::handle weight, nb::handle out, nb::handle bias, nb::handle residual,
             nb::handle norm_weight, nb::handle normed, double norm_epsilon, bool in_out, uintptr_t stream,
             int64_t times) {
            Stream const s = stream_of(stream);
            auto const read = [&](nb::handle t, char const* what) {
              return operand(t, what, o.device, Access::kRead, s);
            };
            Operand const in = read(x, "x"), w = read(weight, "the weight"), b = read(bias, "the bias"),
                          r = read(residual, "the residual"), nw = read(norm_weight, "the norm's weight"),
                          y = operand(out, "the output", o.device, Access::kWrite, s),
                          n = operand(normed, "the normed output", o.device, Access::kWrite, s);
            SumEpilogue const epilogue{b.tensor, r.tensor, nw.tensor, n.tensor, norm_epsilon, {}};
            WeightLayout const layout = in_out ? WeightLayout::kInOut : WeightLayout::kOutIn;
            return microseconds_of(times, [&] { o.op.run(m, in.tensor, w.tensor, layout, y.tensor, epilogue, s); });
          },
          nb::arg("m"), nb::arg("x"), nb::arg("weight"), nb::arg("out"), nb::arg("bias").none(),
          nb::arg("residual").none(), nb::arg("norm_weight").none(), nb::arg("normed").none(), nb::arg("norm_epsilon"),
          nb::arg("in_out"), nb::arg("stream"), nb::arg("times") = 1);
}

}  // namespace

void bind_operators(nb::module_& module) {
  bind_gather(module);
  bind_sum<GemmReduceScatter>(module, "GemmReduceScatter");
  bind_sum<GemmAllReduce>(module, "GemmAllReduce");
  module.def("part_of_rows", [](int64_t m, int rank, int ranks) {
    Part const part = part_of_rows(m, rank, ranks);
    return nb::make_tuple(part.begin, part.size);
  });
  module.def("part_of_columns", [](int64_t total, int rank, int ranks) {
    Part const part = part_of_columns(total, rank, ranks);
    return nb::make_tuple(part.begin, part.size);
  });
}

}  // namespace flux::python
