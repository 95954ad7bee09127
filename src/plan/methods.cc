#include "plan/methods.h"

#include <fmt/format.h>

#include <algorithm>

#include "flux/error.h"

namespace flux {

std::string_view name(Method method) {
  return method == Method::kFlux ? "flux" : method == Method::kNone ? "none" : "chunked";
}
Method parse_method(std::string_view text) {
  for (Method method : {Method::kFlux, Method::kNone, Method::kChunked})
    if (name(method) == text) return method;
  throw Error(ErrorKind::kInvalid, fmt::format("method '{}' is unknown; allowed are flux, none, chunked", text));
}

double chunked_us(Problem const& p, Machine const& any) {
  Machine const machine = machine_for(any, p.dtype);
  if (p.op == Op::kGemmAllReduce) {  // its two halves; there is no ring that does both at once
    Problem half = p;
    half.op = Op::kGemmReduceScatter;
    return chunked_us(half, machine) + parts(half, machine).collective_us;
  }
  LinkRates const& link = machine.link;
  int64_t const rows = (p.m + p.ranks - 1) / p.ranks;
  TileRow const shape = best_shape(rows, p.local_n(), depth(p, machine), p.layout, p.gated, machine);
  double const clock = parts(p, machine).clock_mhz, bytes = static_cast<double>(rows * p.row_bytes());
  double const piece = machine.gemm_us + cycles(shape, rows, p.local_n(), depth(p, machine), p.layout, machine) /
                                             machine.library_speed / clock;
  // A step of the ring is a send and a receive of the collective library.
  double step = link.collective_us / 2 + bytes / link.collective_gbps / 1e3;
  if (p.nodes > 1) step = std::max(step, link.collective_us / 2 + machine.nic_us + bytes / machine.nic_gbps / 1e3);
  double const add = p.gathers() ? 0 : 3 * bytes / machine.memory_gbps / 1e3 + machine.gemm_us / 2;
  double const beside = 1 / machine.beside, steps = p.ranks - 1;
  // AG: the first piece is here. RS: the last piece's sum follows the last arrival.
  return machine.call_us + piece + steps * std::max(piece * beside + add, step) + (p.gathers() ? 0 : step + add);
}

OperatorCost Costs::of(Problem const& problem, Method method) {
  std::string const key = fmt::format("{} {}", to_string(problem), name(method));
  if (auto const known = known_.find(key); known != known_.end()) return known->second;
  Parts const alone = parts(problem, machine_);
  OperatorCost cost{alone.none_us, alone.gemm_us};
  if (method == Method::kChunked) cost.total_us = chunked_us(problem, machine_);
  if (method == Method::kFlux)
    cost.total_us = std::min(cost.total_us, rank_candidates(problem, machine_, Effort::kQuick).best().total_us);
  return known_[key] = cost;
}

double Costs::gemm_us(int64_t m, int64_t n, int64_t k) {
  TileRow const shape = best_shape(m, n, k, WeightLayout::kOutIn, false, machine_);
  double const of = cycles(shape, m, n, k, WeightLayout::kOutIn, machine_) / machine_.library_speed;
  return machine_.gemm_us + of / clock_mhz(machine_, busy(of / machine_.clock_mhz, 0));
}

}  // namespace flux
