#include "bench/gemm/stock.h"

#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include <memory>

#include "flux/error.h"

namespace flux::bench {
namespace {

using Bf16 = cutlass::bfloat16_t;
using Rows = cutlass::layout::RowMajor;
using Columns = cutlass::layout::ColumnMajor;

template <class Tile, class Cluster, class Mainloop, class Epilogue>
struct Stock {
  using EpilogueOp = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Rows, 8, Bf16, Rows, 8,
      Epilogue>::CollectiveOp;
  using MainloopOp = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Bf16, Rows, 8, Bf16, Columns, 8, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename EpilogueOp::SharedStorage))>,
      Mainloop>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, MainloopOp, EpilogueOp,
                                                      cutlass::gemm::PersistentScheduler>;
  using Device = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

  static void add(std::vector<GpuMethod>& methods, char const* name, GemmProblem const& p, void const* x,
                  void const* weight, void* out, void* workspace) {
    int const m = static_cast<int>(p.m), n = static_cast<int>(p.rank_n()), k = static_cast<int>(p.rank_k());
    using Order = cutlass::gemm::kernel::detail::RasterOrderOptions;
    for (Order const raster : {Order::AlongM, Order::AlongN})
      for (int const swizzle : {1, 4}) {
        typename Device::Arguments arguments{
            cutlass::gemm::GemmUniversalMode::kGemm,
            {m, n, k, 1},
            {static_cast<Bf16 const*>(x),
             {k, cute::Int<1>{}, 0},
             static_cast<Bf16 const*>(weight),
             {k, cute::Int<1>{}, 0}},
            {{1.f, 0.f}, nullptr, {}, static_cast<Bf16*>(out), {n, cute::Int<1>{}, 0}}};
        arguments.hw_info.sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(0);
        arguments.scheduler.raster_order = raster;
        arguments.scheduler.max_swizzle_size = swizzle;
        auto device = std::make_shared<Device>();
        if (device->can_implement(arguments) != cutlass::Status::kSuccess ||
            device->initialize(arguments, workspace) != cutlass::Status::kSuccess)
          continue;
        methods.push_back({std::string("cutlass ") + name + (raster == Order::AlongM ? " along_m" : " along_n") +
                               " swizzle=" + std::to_string(swizzle),
                           [device] {
                             if (device->run() != cutlass::Status::kSuccess)
                               throw Error(ErrorKind::kDevice, "stock CUTLASS did not run");
                           },
                           {}});
      }
  }
};

using cute::_1;
using cute::_128;
using cute::_2;
using cute::_256;
using cute::_64;
using Cooperative = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
using PingPong = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
using StoreCooperative = cutlass::epilogue::TmaWarpSpecializedCooperative;
using Store = cutlass::epilogue::TmaWarpSpecialized;

}  // namespace

std::vector<GpuMethod> stock_cutlass(GemmProblem const& p, void const* x, void const* weight, void* out,
                                     void* workspace) {
  std::vector<GpuMethod> methods;
  if (p.layout != WeightLayout::kOutIn || p.dtype != DType::kBF16) return methods;
  Stock<cute::Shape<_128, _256, _64>, cute::Shape<_2, _1, _1>, Cooperative, StoreCooperative>::add(
      methods, "128x256 cooperative 2x1", p, x, weight, out, workspace);
  Stock<cute::Shape<_256, _128, _64>, cute::Shape<_2, _1, _1>, Cooperative, StoreCooperative>::add(
      methods, "256x128 cooperative 2x1", p, x, weight, out, workspace);
  Stock<cute::Shape<_128, _128, _64>, cute::Shape<_2, _1, _1>, PingPong, Store>::add(methods, "128x128 ping-pong 2x1",
                                                                                     p, x, weight, out, workspace);
  return methods;
}

}  // namespace flux::bench
