#pragma once
// An operator by each of the ways that a program may choose, in microseconds.
#include <map>
#include <string>
#include <string_view>

#include "plan/candidates.h"

namespace flux {

/// `kFlux`: the best simulated plan, or not fused where that is faster. `kNone`: the best GEMM, then the collective.
/// `kChunked`: as many GEMMs as ranks, the pieces passed around a ring meanwhile.
enum class Method { kFlux, kNone, kChunked };
std::string_view name(Method method);
Method parse_method(std::string_view text);  ///< throws Error{kInvalid}

struct OperatorCost {
  double total_us = 0, gemm_us = 0;
  double exposed_us() const { return total_us - gemm_us; }  ///< what communication adds
};

/// The medium-grained decomposition. Source of the scheme: the FLUX paper's description of TransformerEngine's.
double chunked_us(Problem const& problem, Machine const& machine);

/// Costs of the operators on one machine, each simulated once.
class Costs {
 public:
  explicit Costs(Machine const& machine) : machine_(machine) {}
  OperatorCost of(Problem const& problem, Method method);
  /// A product on one rank, alone.
  double gemm_us(int64_t m, int64_t n, int64_t k);
  Machine const& machine() const { return machine_; }

 private:
  Machine machine_;
  std::map<std::string, OperatorCost> known_;
};

}  // namespace flux
