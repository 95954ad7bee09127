#pragma once
// Ways to perform an operator's collective alone: that of the operators themselves, and transfers by other means. What
// is put after or before the GEMM is the fastest of them, as the GEMM is the fastest of cuBLASLt's.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/gemm/exchange.h"
#include "bench/gemm/subject.h"

namespace flux::bench {

struct Collective {
  std::string name;
  std::function<void(Stream)> run;
  void* partials = nullptr;  ///< RS and AR: where the GEMM's result is taken from
  int64_t sent_bytes = 0;
};

class Collectives {
 public:
  /// Collective.
  Collectives(World& world, Subject const& subject);
  ~Collectives();

  std::vector<Collective> const& ways() const { return ways_; }
  Exchange& exchange() { return *exchange_; }

 private:
  class ScatterAlone;
  void add(std::string name, Exchange& exchange, Exchange::By by, Tensor const& out);

  std::unique_ptr<AllGatherGemm> gather_;
  std::unique_ptr<ScatterAlone> scatter_;
  std::unique_ptr<Exchange> exchange_;              // the operator's own pattern
  std::unique_ptr<Exchange> scattered_, gathered_;  // AR in two shots
  std::unique_ptr<Buffer> sums_;                    // what is summed, of a rank
  std::vector<Collective> ways_;
};

}  // namespace flux::bench
