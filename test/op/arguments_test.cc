// Wrong arguments: one error that says what was given and what is allowed, before anything starts; the world goes on.
#include <gtest/gtest.h>

#include <functional>
#include <mutex>

#include "flux/op.h"
#include "io/owned_tensor.h"

namespace flux::test {
namespace {

constexpr int kRanks = 3;
constexpr int64_t kM = 10, kK = 16, kN = 12;

WorldOptions options() {
  WorldOptions o;
  o.limit_seconds = 10;
  return o;
}

// What one rank hands to AG+GEMM, all of it right.
struct GatherArguments {
  OwnedTensor x_data, w_data, out_data, bias_data, gathered_data;
  int64_t m = kM;
  Tensor x, gathered;
  Linear linear;
  explicit GatherArguments(int rank)
      : x_data(DType::kF32, part_of_rows(kM, rank, kRanks).size, kK),
        w_data(DType::kF32, kN, kK),
        out_data(DType::kF32, kM, kN),
        bias_data(DType::kF32, 1, kN),
        gathered_data(DType::kF32, kM, kK),
        x(x_data.view()),
        gathered(gathered_data.view()) {
    linear.weight = w_data.view(), linear.out = out_data.view(), linear.bias = bias_data.view();
  }
};

// What one rank hands to GEMM+RS (rows of its own) or GEMM+AR (all rows).
struct SumArguments {
  OwnedTensor x_data, w_data, out_data, row_data, residual_data, normed_data;
  int64_t m = kM;
  Tensor x, weight, out;
  WeightLayout layout = WeightLayout::kOutIn;
  SumEpilogue epilogue;
  explicit SumArguments(int64_t rows)
      : x_data(DType::kF32, kM, kK),
        w_data(DType::kF32, kN, kK),
        out_data(DType::kF32, rows, kN),
        row_data(DType::kF32, 1, kN),
        residual_data(DType::kF32, rows, kN),
        normed_data(DType::kF32, rows, kN),
        x(x_data.view()),
        weight(w_data.view()),
        out(out_data.view()) {
    epilogue.bias = row_data.view(), epilogue.residual = residual_data.view();
    epilogue.norm_weight = row_data.view(), epilogue.normed = normed_data.view();
  }
};

template <class Arguments>
struct Mistake {
  char const* name;
  std::function<void(Arguments&)> make;
  std::vector<std::string> says;  // each of these
};

// Every rank makes the mistake and gets the error; then all make the right call, in the same world.
template <class Arguments, class Make, class Run>
void check(std::vector<Mistake<Arguments>> const& mistakes, Make&& arguments, Run&& run) {
  std::mutex mutex;
  std::string failures;
  auto note = [&](std::string const& text) {
    std::lock_guard lock(mutex);
    failures += text + "\n";
  };
  run_threads(kRanks, options(), [&](World& world) {
    auto call = run(world);
    for (auto const& mistake : mistakes) {
      auto wrong = arguments(world.rank());
      mistake.make(wrong);
      try {
        call(wrong);
        note(std::string(mistake.name) + ": no error");
      } catch (Error const& error) {
        if (error.kind() != ErrorKind::kInvalid) note(std::string(mistake.name) + ": another kind of error");
        for (auto const& part : mistake.says)
          if (std::string(error.what()).find(part) == std::string::npos)
            note(std::string(mistake.name) + ": '" + part + "' is not in: " + error.what());
      }
      auto right = arguments(world.rank());
      call(right);
    }
  });
  EXPECT_EQ(failures, "");
}

void* odd(void* data) { return static_cast<std::byte*>(data) + 1; }

TEST(Arguments, OfAllGatherGemm) {
  using A = GatherArguments;
  std::vector<Mistake<A>> const mistakes = {
      {"m too large", [](A& a) { a.m = kM + 1; }, {"m is 11", "0 to 10"}},
      {"m negative", [](A& a) { a.m = -1; }, {"m is -1", "0 to 10"}},
      {"m of other rows", [](A& a) { a.m = kM - 3; }, {"x is", "this call needs"}},
      {"x of another dtype", [](A& a) { a.x.dtype = DType::kBF16; }, {"x is bf16", "made for fp32"}},
      {"x of another width", [](A& a) { a.x.columns = kK - 1; }, {"x is [", "15]", "16]"}},
      {"x without data", [](A& a) { a.x.data = nullptr; }, {"x has no data"}},
      {"x at an odd address", [](A& a) { a.x.data = odd(a.x.data); }, {"x starts at", "4"}},
      {"x whose rows overlap", [](A& a) { a.x.stride = kK - 1; }, {"x has rows 15 elements apart", "16"}},
      {"x with negative stride", [](A& a) { a.x.stride = -kK; }, {"x has rows -16 elements apart"}},
      {"weight of another dtype", [](A& a) { a.linear.weight.dtype = DType::kF64; }, {"the weight is fp64", "fp32"}},
      {"weight of another k",
       [](A& a) { a.linear.weight.columns = 8, a.linear.weight.stride = 8; },
       {"the weight is [12, 8]", "[12, 16]"}},
      {"weight the other way round", [](A& a) { a.linear.layout = WeightLayout::kInOut; }, {"the weight is [12, 16]"}},
      {"weight of negative size", [](A& a) { a.linear.weight.rows = -kN; }, {"the weight is [-12, 16]", "0 or more"}},
      {"output of another size", [](A& a) { a.linear.out.columns = kN - 1; }, {"the output is [10, 11]", "[10, 12]"}},
      {"gated with full output", [](A& a) { a.linear.gated = true; }, {"the output is [10, 12]", "[10, 6]"}},
      {"gated with odd columns",
       [](A& a) { a.linear.gated = true, a.linear.weight.rows = 11, a.linear.bias.columns = 11; },
       {"gated", "11", "even"}},
      {"bias of another size", [](A& a) { a.linear.bias.columns = kN - 1; }, {"the bias is [1, 11]", "[1, 12]"}},
      {"bias of another dtype", [](A& a) { a.linear.bias.dtype = DType::kF16; }, {"the bias is fp16", "fp32"}},
      {"gathered of another size", [](A& a) { a.gathered.rows = 1; }, {"the gathered output is [1, 16]", "[10, 16]"}},
  };
  check<A>(
      mistakes, [](int rank) { return A(rank); },
      [](World& world) {
        auto op = std::make_shared<AllGatherGemm>(world, AllGatherGemm::Shape{kM, kK, DType::kF32});
        return [op](A& a) { op->run(a.m, a.x, std::span(&a.linear, 1), a.gathered); };
      });
}

std::vector<Mistake<SumArguments>> sum_mistakes() {
  using A = SumArguments;
  return {
      {"m too large", [](A& a) { a.m = kM + 1; }, {"m is 11", "0 to 10"}},
      {"m negative", [](A& a) { a.m = -7; }, {"m is -7", "0 to 10"}},
      {"x of another dtype", [](A& a) { a.x.dtype = DType::kF16; }, {"x is fp16", "made for fp32"}},
      {"x of another k", [](A& a) { a.x.columns = 8; }, {"x is [10, 8]", "[10, 16]"}},
      {"x with few rows", [](A& a) { a.x.rows = 4; }, {"x is [4, 16]", "[10, 16]"}},
      {"x at an odd address", [](A& a) { a.x.data = odd(a.x.data); }, {"x starts at", "4"}},
      {"x without data", [](A& a) { a.x.data = nullptr; }, {"x has no data"}},
      {"weight of another n", [](A& a) { a.weight.rows = 11; }, {"the weight is [11, 16]", "[12, 16]"}},
      {"weight whose rows overlap", [](A& a) { a.weight.stride = 3; }, {"the weight has rows 3 elements apart"}},
      {"weight of negative k", [](A& a) { a.weight.columns = a.x.columns = -16; }, {"[12, -16]", "0 or more"}},
      {"output of another size", [](A& a) { a.out.columns = 5; }, {"the output is [", "5]", "12]"}},
      {"output without data", [](A& a) { a.out.data = nullptr; }, {"the output has no data"}},
      {"bias of two rows", [](A& a) { a.epilogue.bias.rows = 2; }, {"the bias is [2, 12]", "[1, 12]"}},
      {"residual of another size", [](A& a) { a.epilogue.residual.rows = 99; }, {"the residual is [99, 12]"}},
      {"norm without gamma", [](A& a) { a.epilogue.norm_weight = {}; }, {"without the norm's weight", "both"}},
      {"gamma without normed", [](A& a) { a.epilogue.normed = {}; }, {"the normed output is [0, 0]"}},
      {"gamma of another size", [](A& a) { a.epilogue.norm_weight.columns = 7; }, {"the norm's weight is [1, 7]"}},
      {"negative epsilon", [](A& a) { a.epilogue.norm_epsilon = -1; }, {"epsilon is -1"}},
  };
}

TEST(Arguments, OfGemmReduceScatter) {
  check<SumArguments>(
      sum_mistakes(), [](int rank) { return SumArguments(part_of_rows(kM, rank, kRanks).size); },
      [](World& world) {
        auto op = std::make_shared<GemmReduceScatter>(world, GemmReduceScatter::Shape{kM, kN, DType::kF32});
        return [op](SumArguments& a) { op->run(a.m, a.x, a.weight, a.layout, a.out, a.epilogue); };
      });
}

TEST(Arguments, OfGemmAllReduce) {
  check<SumArguments>(
      sum_mistakes(), [](int) { return SumArguments(kM); },
      [](World& world) {
        auto op = std::make_shared<GemmAllReduce>(world, GemmAllReduce::Shape{kM, kN, DType::kF32});
        return [op](SumArguments& a) { op->run(a.m, a.x, a.weight, a.layout, a.out, a.epilogue); };
      });
}

// int8 and fp8: what they have beside other types, and what they are not taken in.
TEST(Arguments, OfOneByte) {
  for (DType dtype : {DType::kI8, DType::kF8}) {
    struct A {
      OwnedTensor x, w, out, row_scales, column_scales;
      Linear linear;
      A(DType dtype, int rank, int64_t k)
          : x(dtype, part_of_rows(kM, rank, kRanks).size, k),
            w(dtype, kN, k),
            out(DType::kBF16, kM, kN),
            row_scales(DType::kF32, 1, kM),
            column_scales(DType::kF32, 1, kN) {
        linear.weight = w, linear.out = out, linear.scales = {row_scales, column_scales};
      }
    };
    std::string const word(name(dtype));
    std::vector<Mistake<A>> const mistakes = {
        {"output of the operands' dtype", [&](A& a) { a.linear.out.dtype = dtype; }, {"the output is " + word, "bf16"}},
        {"weight [in,out]",
         [&](A& a) {
           a.linear.layout = WeightLayout::kInOut, std::swap(a.linear.weight.rows, a.linear.weight.columns);
         },
         {"the weight is [in,out]", word, "[out,in]"}},
        {"too few row scales", [](A& a) { a.linear.scales.rows.columns = 3; }, {"row scales is [1, 3]", "[1, 10]"}},
        {"too many column scales",
         [](A& a) { a.linear.scales.columns.columns = 13; },
         {"column scales is [1, 13]", "[1, 12]"}},
        {"scales in bf16", [](A& a) { a.linear.scales.rows.dtype = DType::kBF16; }, {"row scales is bf16", "fp32"}},
        {"up scales without up", [](A& a) { a.linear.up_scale = a.linear.scales.columns; }, {"second weight"}},
    };
    check<A>(
        mistakes, [&](int rank) { return A(dtype, rank, kK); },
        [&](World& world) {
          auto op = std::make_shared<AllGatherGemm>(world, AllGatherGemm::Shape{kM, kK, dtype});
          return [op](A& a) { op->run(kM, a.x, a.linear); };
        });
    std::vector<Mistake<A>> const odd = {{"k of 24", [&](A& a) { a = A(dtype, 0, 24); }, {"k is 24", word, "16"}}};
    check<A>(
        odd, [&](int) { return A(dtype, 0, 32); },
        [&](World& world) {
          auto op = std::make_shared<GemmAllReduce>(world, GemmAllReduce::Shape{kM, kN, dtype});
          return [op, dtype](A& a) {
            OwnedTensor const x(dtype, kM, a.linear.weight.columns);
            SumEpilogue epilogue;
            epilogue.scales = a.linear.scales;
            op->run(kM, x, a.linear.weight, WeightLayout::kOutIn, a.linear.out, epilogue);
          };
        });
  }
  check<GatherArguments>(
      {{"scales of fp32", [&](auto& g) { g.linear.scales.rows = g.linear.bias; }, {"scales", "fp32", "int8 and fp8"}}},
      [](int rank) { return GatherArguments(rank); },
      [](World& world) {
        auto op = std::make_shared<AllGatherGemm>(world, AllGatherGemm::Shape{kM, kK, DType::kF32});
        return [op](GatherArguments& g) { op->run(g.m, g.x, std::span(&g.linear, 1), g.gathered); };
      });
}

// Constructions that must fail on every rank, and the words that say why.
struct Refusal {
  char const* name;
  int64_t max_m, other;
  std::function<void(Plan&)> change;
  std::vector<std::string> says;
};

TEST(Arguments, OfConstruction) {
  auto keep = [](Plan&) {};
  std::vector<Refusal> const refusals = {
      {"negative m", -1, 16, keep, {"m is -1"}},
      {"negative size", 16, -1, keep, {"is -1", "0 to"}},
      {"m beyond all bounds", int64_t{1} << 62, 16, keep, {"m is 4611686018427387904", "0 to"}},
      {"bytes beyond all bounds", (int64_t{1} << 31) - 1, (int64_t{1} << 31) - 1, keep, {"elements"}},
      {"block of no rows", 16, 16, [](Plan& p) { p.block_m = 0, p.block_n = 8; }, {"tile=0x8", "1 to 65536"}},
      {"block of no columns", 16, 16, [](Plan& p) { p.block_m = 8, p.block_n = -8; }, {"tile=8x-8", "1 to 65536"}},
      {"no workers", 16, 16, [](Plan& p) { p.workers = 0; }, {"workers=0", "1 to 256"}},
      {"no slices", 16, 16, [](Plan& p) { p.k_slices = 0; }, {"k_slices=0", "1 to 64"}},
      {"negative communication tile", 16, 16, [](Plan& p) { p.comm_rows = -4; }, {"comm_rows=-4", "from 1"}},
      {"no such band", 16, 16, [](Plan& p) { p.band = -1; }, {"band=-1", "1 to 1024"}},
      {"no buffers", 16, 16, [](Plan& p) { p.buffers = 0; }, {"buffers=0", "1 or 2"}},
      {"no such spare", 16, 16, [](Plan& p) { p.spare = -1; }, {"spare=-1", "0 to 64"}},
      {"no such lane", 16, 16, [](Plan& p) { p.lane = 8; }, {"lane=8", "0 to 7"}},
      {"no such route", 16, 16, [](Plan& p) { p.route = static_cast<RouteKind>(9); }, {"route=?", "push"}},
      {"no such store", 16, 16, [](Plan& p) { p.store = static_cast<StoreKind>(9); }, {"store=?", "tensor, bulk"}},
  };
  std::mutex mutex;
  std::string failures;
  run_threads(2, options(), [&](World& world) {
    auto expect = [&](Refusal const& r, auto&& construct) {
      std::string problem;
      try {
        construct();
        problem = "no error";
      } catch (Error const& error) {
        for (auto const& part : r.says)
          if (error.kind() != ErrorKind::kInvalid || std::string(error.what()).find(part) == std::string::npos)
            problem = "'" + part + "' is not in: " + error.what();
      }
      std::lock_guard lock(mutex);
      if (!problem.empty()) failures += std::string(r.name) + ": " + problem + "\n";
    };
    for (Refusal const& r : refusals) {
      Plan plan;
      r.change(plan);
      expect(r, [&] { AllGatherGemm op(world, {r.max_m, r.other, DType::kF32}, plan); });
      expect(r, [&] { GemmReduceScatter op(world, {r.max_m, r.other, DType::kF32}, plan); });
      expect(r, [&] { GemmAllReduce op(world, {r.max_m, r.other, DType::kF32}, plan); });
      expect(r, [&] { GemmReduceScatter::shared_bytes({r.max_m, r.other, DType::kF32}, 2, plan); });
    }
    Plan ring;
    ring.path = Path::kRing, ring.transport = Transport::kPull;
    expect({"a ring that pulls", 0, 0, keep, {"transport=pull", "ring"}}, [&] {
      AllGatherGemm op(world, {16, 16, DType::kF32}, ring);
    });
    AllGatherGemm works(world, {16, 16, DType::kF32});  // the world is none the worse
  });
  EXPECT_EQ(failures, "");
}

TEST(Arguments, SharedBytesAreWhatIsSaidBefore) {
  Plan one;
  one.buffers = 1;
  AllGatherGemm::Shape const shape{1024, 256, DType::kBF16};
  EXPECT_GE(AllGatherGemm::shared_bytes(shape, 8), 2 * 1024 * 256 * 2);
  EXPECT_EQ(AllGatherGemm::shared_bytes(shape, 8), 2 * AllGatherGemm::shared_bytes(shape, 8, one));
}

}  // namespace
}  // namespace flux::test
