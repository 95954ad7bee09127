// FLUX around a kernel of CUTLASS: a stock Hopper GEMM out of CollectiveBuilder with the three parts of
// cutlass_parts.h, exact on ranks that share one GPU. No layer both gathers and scatters in one GEMM; here one kernel
// shows both: rank p ends with its rows of the sum of x w[r]^T over all ranks r.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "cutlass_parts.h"
#include "kernel/check.h"
#include "kernel/residency.h"
#include "kernel/slot_sum.h"

using Bf16 = cutlass::bfloat16_t;
constexpr int kRows = 256, kN = 256, kK = 256;  // rows of a rank; with k <= 256, sums of -1, 0 and 1 are exact in bf16
constexpr int kCommRows = 192;                  // rows that arrive together
constexpr int kBlocks = 6;                      // of a rank's GEMM, and of its sum of slots

using Tile = cute::Shape<cute::Int<kTile>, cute::Int<kTile>, cute::_64>;
using Cluster = cute::Shape<cute::_1, cute::_1, cute::_1>;
using RowMajor = cutlass::layout::RowMajor;
using StockEpilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster, cutlass::epilogue::collective::EpilogueTileAuto,
    float, float, void, RowMajor, 8, Bf16, RowMajor, 8, cutlass::epilogue::TmaWarpSpecializedCooperative>::CollectiveOp;
using StockMainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Bf16, RowMajor, 8, Bf16, cutlass::layout::ColumnMajor, 8,
    float, Tile, Cluster, cutlass::gemm::collective::StageCountAutoCarveout<sizeof(StockEpilogue::SharedStorage)>,
    cutlass::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int>, Gated<StockMainloop>,
                                                    Pushed<StockEpilogue>, Ordered>;

/// What a rank has on the GPU.
struct alignas(128) Rank {
  Bf16 gathered[4 * kRows * kK], w[kN * kK], slots[4 * kRows * kN], y[kRows * kN];  // for 4 ranks at most
  flux::Word arrived[64], partial[64], counts[64], abort, goal;
  flux::Record record;
};

/// One call on so many ranks; whether every rank has the bytes of a plain product.
bool right_on(int ranks) {
  int const m = ranks * kRows;
  flux::Shards const shards{m, ranks, 1};
  flux::ArrivalWords const arrivals{shards, {kK, 1, 1}, kCommRows};
  flux::BandWords const bands{shards, kTile};
  std::vector<Rank> host(ranks);
  std::mt19937 random(ranks);
  auto draw = [&](Bf16* first, int count) {
    for (int i = 0; i < count; ++i) first[i] = Bf16(static_cast<int>(random() % 3) - 1);
  };
  for (int r = 0; r < ranks; ++r) {
    std::memset(static_cast<void*>(&host[r]), 0xff, offsetof(Rank, arrived));  // NaN
    draw(&host[r].gathered[r * kRows * kK], kRows * kK), draw(host[r].w, kN * kK), host[r].goal = 0x5eed;
  }
  Rank* gpu = nullptr;
  flux::check_cuda(cudaMalloc(&gpu, ranks * sizeof(Rank)), "memory");
  flux::check_cuda(cudaMemcpy(gpu, host.data(), ranks * sizeof(Rank), cudaMemcpyDefault), "a copy");
  std::vector<CUstream_st*> streams(2 * ranks + 1);  // of GEMMs, of sums, of copies
  for (auto& s : streams) flux::check_cuda(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "a stream");
  auto* const kernel = cutlass::device_kernel<Kernel>;  // loaded now: nothing can be while kernels wait
  constexpr int kBytes = Kernel::SharedStorageSize;
  flux::check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes), "the kernel");
  flux::prepare_slot_sum();
  if (!flux::resident_together({streams.data(), streams.size() - 1}, kBlocks, 5)) return false;

  for (int r = 0; r < ranks; ++r) {
    Rank& me = gpu[r];
    flux::Watch watch;
    watch.record = &me.record, watch.limit_ns = 20'000'000'000, watch.rank = r, watch.ranks = ranks;
    flux::Announcer out{bands, kN / kTile, me.counts, {}, host[r].goal};
    for (int p = 0; p < ranks; ++p) watch.abort.base[p] = &gpu[p].abort, out.words.base[p] = gpu[p].partial;

    Kernel::Arguments stock{cutlass::gemm::GemmUniversalMode::kGemm, {m, kN, kK}};
    stock.mainloop = {me.gathered, {kK, {}, 0}, me.w, {kK, {}, 0}};
    stock.epilogue.ptr_D = me.slots, stock.epilogue.dD = {kN, {}, 0};
    Kernel::Params params = Kernel::to_underlying_arguments(stock, nullptr);
    params.mainloop.ours = {r, arrivals, me.arrived, out.goal, watch};
    params.scheduler.ours = arrange(flux::Order::kArrival, flux::Tiling::kAcross, shards, kTile, kN / kTile, 2, r);
    params.epilogue.ours.route = {r, kRows, out};
    for (int p = 0; p < ranks; ++p) {
      stock.epilogue.ptr_D = gpu[p].slots;
      params.epilogue.ours.at[p] = StockEpilogue::to_underlying_arguments(stock.problem_shape, stock.epilogue, nullptr);
    }
    kernel<<<kBlocks, Kernel::MaxThreadsPerBlock, kBytes, streams[r]>>>(params);
    flux::check_cuda(cudaGetLastError(), "the GEMM");

    flux::SlotSum sum;
    sum.bands = bands, sum.owner = r, sum.sources = sum.parts = ranks, sum.slots = me.slots, sum.slot_rows = kRows;
    sum.words = me.partial, sum.goal = out.goal, sum.watch = watch;
    sum.out = flux::matrix(me.y, flux::DType::kBF16, kRows, kN);
    flux::sum_slots(sum, kBlocks, streams[ranks + r]);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // all of them wait, before memory full of NaN
  auto push = [&](auto* to, auto const* from, int count) {
    flux::check_cuda(cudaMemcpyAsync(to, from, count * sizeof *to, cudaMemcpyDefault, streams.back()), "a push");
  };
  for (int i = 0; i < ranks * (ranks - 1) * arrivals.tiles(); ++i) {  // to the right neighbours first
    int const t = i % arrivals.tiles(), r = i / arrivals.tiles() % ranks,
              p = (r + 1 + i / arrivals.tiles() / ranks) % ranks;
    int const row = r * kRows + t * kCommRows, rows = std::min(kCommRows, kRows - t * kCommRows);
    push(&gpu[p].gathered[row * kK], &gpu[r].gathered[row * kK], rows * kK);
    push(&gpu[p].arrived[arrivals.index(r, t, 0)], &gpu[r].goal, 1);
  }
  flux::check_cuda(cudaDeviceSynchronize(), "all kernels");
  flux::check_cuda(cudaMemcpy(host.data(), gpu, ranks * sizeof(Rank), cudaMemcpyDefault), "a copy");
  for (auto s : streams) cudaStreamDestroy(s);
  cudaFree(gpu);

  bool right = true;
  for (int i = 0; i < m * kN; ++i) {
    float sum = 0;
    Rank const& owner = host[i / (kRows * kN)];
    for (Rank const& r : host)
      for (int k = 0; k < kK; ++k) sum += float(owner.gathered[i / kN * kK + k]) * float(r.w[i % kN * kK + k]);
    right &= owner.y[i % (kRows * kN)].storage == Bf16(sum).storage;
  }
  return right;
}

int main() {
  int major = 0;
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess || major != 9)
    return std::puts("cutlass_gemm: needs a GPU of compute capability 9.0, and there is none here"), 0;
  bool right = true;
  for (int ranks : {2, 3, 4}) {
    bool const now = right_on(ranks);
    std::printf(
        "cutlass_gemm: %s on %d ranks of one GPU: tiles of a stock CUTLASS kernel waited for rows that came late "
        "and were announced to their owners once written\n",
        now ? "right to the last bit" : "WRONG", ranks);
    right &= now;
  }
  return right ? 0 : 1;
}
