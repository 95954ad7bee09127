// Operation times at m = 4096 that the authors of the FLUX paper published with their code, 8 GPUs, microseconds: the
// machines of that table have its GEMM and NCCL rates, and no row has a number of its own.
#include <gtest/gtest.h>

#include "plan/candidates.h"

namespace flux {
namespace {

struct Published {
  Op op;
  char const* machine;
  DType dtype;
  double none_us, flux_us;
};

TEST(Published, TotalsAreWithinFifteenPerCent) {
  constexpr double kWithin = 0.15;
  for (auto const& [op, machine, dtype, none_us, flux_us] : std::initializer_list<Published>{
           {Op::kAllGatherGemm, "a800", DType::kBF16, 3099, 2469},
           {Op::kGemmReduceScatter, "a800", DType::kBF16, 3100, 2508},
           {Op::kAllGatherGemm, "h800", DType::kBF16, 1429, 957},
           {Op::kGemmReduceScatter, "h800", DType::kBF16, 1408, 932},
           {Op::kAllGatherGemm, "l20", DType::kF16, 16946, 5903},
           {Op::kGemmReduceScatter, "l20", DType::kF16, 17664, 5730},
       }) {
    bool const gathers = op == Op::kAllGatherGemm;
    Problem const problem{op, 4096, gathers ? 49152 : 12288, gathers ? 12288 : 49152, 8, dtype};
    Ranking const ranking = rank_candidates(problem, find_machine(machine));
    SCOPED_TRACE(to_string(problem) + " on " + machine);
    EXPECT_NEAR(ranking.parts.none_us / none_us, 1, kWithin);
    EXPECT_NEAR(ranking.best().total_us / flux_us, 1, kWithin);
    std::printf("%-8s %-5s none %6.0f published %6.0f (%+.1f %%), fused %6.0f published %6.0f (%+.1f %%)\n",
                std::string(name(op)).c_str(), machine, ranking.parts.none_us, none_us,
                100 * (ranking.parts.none_us / none_us - 1), ranking.best().total_us, flux_us,
                100 * (ranking.best().total_us / flux_us - 1));
  }
}

}  // namespace
}  // namespace flux
