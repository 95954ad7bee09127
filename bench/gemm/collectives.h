#pragma once
// Ways to perform an operator's collective alone: that of the operators themselves, and transfers by other means. What
// is put after or before the GEMM is the fastest of them, as the GEMM is the fastest of cuBLASLt's.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/gemm/exchange.h"
#include "bench/gemm/subject.h"
#include "world/cuda/nccl.h"

namespace flux::bench {

struct Collective {
  std::string name;
  std::function<void(Stream)> run;
  void* partials = nullptr;      ///< RS and AR: where the GEMM's result is taken from
  void const* result = nullptr;  ///< AG: all rows, null where an operator keeps them to itself; RS and AR: the sums
  int64_t sent_bytes = 0;
};

class Collectives {
 public:
  /// `nccl`: beside the ranks, or none. Collective.
  Collectives(World& world, Subject const& subject, Nccl* nccl);
  ~Collectives();

  std::vector<Collective> const& ways() const { return ways_; }
  /// The place of NCCL's, -1: there is none.
  int nccl() const { return nccl_; }
  Exchange& exchange() { return *exchange_; }

 private:
  class ScatterAlone;
  class PacketsAlone;
  void add(std::string name, Exchange& exchange, Exchange::By by, Tensor const& out);
  void add_packets(World& world, GemmProblem const& p, Tensor const& out);
  void add_two_shots(World& world, GemmProblem half);
  void add_nccl(Nccl& nccl, Subject const& subject);

  std::unique_ptr<AllGatherGemm> gather_;
  std::unique_ptr<ScatterAlone> scatter_;
  std::unique_ptr<PacketsAlone> packets_;
  std::unique_ptr<Exchange> exchange_;              // the operator's own pattern
  std::unique_ptr<Exchange> scattered_, gathered_;  // AR in two shots
  std::unique_ptr<Buffer> at_nccl_;                 // rows or partials that NCCL carries
  int nccl_ = -1;
  std::vector<Collective> ways_;
};

}  // namespace flux::bench
