// What the engines' launches have in common: what may be asked of them, which kernel, how many blocks.
#include "kernel/gemm.h"

#include <atomic>
#include <string>

#include "engine/sm80/config.h"
#include "engine/sm90/config.h"
#include "kernel/check.h"
#include "kernel/gemm_kernel.h"

namespace flux {
namespace {

constexpr int kMostRows = 32, kMostDevices = 64;

int current_device() {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

/// Those compiled for chips before 8.9 are empty.
void require_fp8(void const* kernel) {
  cudaFuncAttributes attributes;
  check_cuda(cudaFuncGetAttributes(&attributes, kernel), "loading a GEMM");
  require(
      attributes.ptxVersion >= 89,
      "this build has fp8 kernels for no chip like this one; it needs compute capability 8.9 or later, and 89, 90a or "
      "later in FLUX_CUDA_ARCHITECTURES",
      ErrorKind::kUnsupported);
}

/// The kernel of a tile; its shared memory is granted on every device it is asked for on.
GemmKernel kernel_of(TileRow const& tile, DType dtype, WeightLayout layout) {
  require(size_of(dtype) <= 2, "the GPU engines multiply bf16, fp16, int8 and fp8, not " + std::string(name(dtype)));
  require(size_of(dtype) == 2 || (tile.engine == EngineKind::kSm80 && layout == WeightLayout::kOutIn),
          std::string(name(dtype)) + " is multiplied by the sm80 engine, weights [out,in]", ErrorKind::kUnsupported);
  GemmKernel const kernel = gemm_kernel(tile, dtype, layout);
  static std::atomic<uint64_t> granted[2][kMostRows][kPlaces];
  int const device = current_device();
  auto& devices = granted[tile.engine == EngineKind::kSm80][tile.row][place_of(dtype, layout)];
  if (!(devices.load() >> device & 1)) {
    if (dtype == DType::kF8) require_fp8(kernel.function);
    check_cuda(cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel.shared_bytes),
               "shared memory for a GEMM");
    devices.fetch_or(uint64_t{1} << device);
  }
  return kernel;
}

struct Attributes {
  cudaLaunchAttribute list[3];
  cudaLaunchConfig_t launch;
  Attributes(GemmKernel const& kernel, TileRow const& tile, int blocks, bool cooperative, bool beside_last,
             cudaStream_t stream) {
    unsigned count = 0;
    if (tile.cluster > 1) {
      list[count].id = cudaLaunchAttributeClusterDimension;
      list[count++].val.clusterDim = {static_cast<unsigned>(tile.cluster), 1, 1};
    }
    list[count].id = cudaLaunchAttributeCooperative;
    list[count++].val.cooperative = cooperative;
    if (beside_last) {
      list[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
      list[count++].val.programmaticStreamSerializationAllowed = 1;
    }
    launch = {dim3(blocks), dim3(kernel.threads), static_cast<size_t>(kernel.shared_bytes), stream, list, count};
  }
};

void check(GemmLaunch const& l) {
  std::string const sizes = "n=" + std::to_string(l.n()) + ", k=" + std::to_string(l.k());
  int64_t const unit = k_unit(l.weight.dtype);
  require(l.n() % 8 == 0 && l.k() % unit == 0 && l.columns() % 8 == 0,
          sizes + ": on a GPU a rank's n is a multiple of 8 elements (gated: of 16) and its k of " +
              std::to_string(unit) + "; the nearest are n=" + std::to_string((l.n() + 8) / 16 * 16) +
              ", k=" + std::to_string((l.k() + unit / 2) / unit * unit),
          ErrorKind::kUnsupported);
  require(l.a_stride % unit == 0 && l.c_stride % 8 == 0 && l.weight.stride % unit == 0 && aligned(l.weight.data) &&
              aligned(l.scales.columns.data),
          "addresses and row pitches are multiples of 16 bytes on a GPU");
  Shards const slices = l.gate.slices();
  require(slices.total == l.k(), "the gate was made for another k than the weight's");
  require(slices.ranks == 1 || slices.unit % 64 == 0, "slices of k are multiples of 64 elements");
  require(l.order.block_m == l.tile.tile_m && l.order.tiles_n == l.tile.tiles_n(l.n()),
          "the schedule was made for another tile than " + std::to_string(l.tile.tile_m) + " x " +
              std::to_string(l.tile.tile_n));
  require(l.store != StoreKind::kVector || l.route.kind != AnyRoute::Kind::kSum,
          "route=sum adds with bulk reductions, which store=vector has none of; take store=tensor or store=bulk, or "
          "another route",
          ErrorKind::kUnsupported);
  require(!l.bias || (l.bias.dtype == result_of(l.weight.dtype) && reinterpret_cast<uintptr_t>(l.bias.data) % 4 == 0),
          "a bias has the results' dtype and an address of a multiple of 4 bytes");
}

int blocks_of(GemmLaunch const& l, GemmKernel const& kernel) {
  int const most = l.processors > 0 ? l.processors * (l.apart ? 1 : kernel.blocks_of_processor)
                                    : resident_blocks(l.tile, l.weight.dtype, l.layout);
  return static_cast<int>(std::min<int64_t>(l.order.size(), most / l.tile.cluster)) * l.tile.cluster;
}

}  // namespace

GemmKernel gemm_kernel(TileRow const& tile, DType dtype, WeightLayout layout) {
  bool const later = tile.engine == EngineKind::kSm90;
  int const rows = later ? sm90::kConfigs : sm80::kConfigs;
  static_assert(sm90::kConfigs <= kMostRows && sm80::kConfigs <= kMostRows);
  require(tile.row >= 0 && tile.row < rows,
          "row " + std::to_string(tile.row) + " of a table of tiles was asked for; it has " + std::to_string(rows));
#ifdef FLUX_WITH_SM90
  if (later) return sm90::gemm_kernel(tile.row, dtype, layout);
#endif
#ifdef FLUX_WITH_SM80
  if (!later) return sm80::gemm_kernel(tile.row, dtype, layout);
#endif
  throw Error(ErrorKind::kUnsupported, std::string("this build has no kernels of the ") + (later ? "sm90" : "sm80") +
                                           " engine: see FLUX_CUDA_ARCHITECTURES");
}

Epilogue epilogue(GemmLaunch const& l) {
  Epilogue e;
  e.curved = l.activation != Activation::kNone;
  switch (l.activation) {
    case Activation::kNone: break;
    case Activation::kRelu: e.curve = {1e30f, 0, 0}; break;
    case Activation::kGelu: e.curve = {1.5950158f, 0.07401130f, -0.00070303f}; break;
    case Activation::kGeluTanh: e.curve = {1.5957691f, 0.07135482f, 0}; break;
    case Activation::kQuickGelu: e.curve = {1.702f, 0, 0}; break;
    case Activation::kSilu: e.curve = {1, 0, 0}; break;
  }
  e.gated = l.gated, e.bias = l.bias.data;
  return e;
}

int resident_blocks(TileRow const& tile, DType dtype, WeightLayout layout) {
  static std::atomic<int> known[2][kMostRows][kPlaces][kMostDevices];
  GemmKernel const kernel = kernel_of(tile, dtype, layout);
  int const device = current_device();
  auto& cached = known[tile.engine == EngineKind::kSm80][tile.row][place_of(dtype, layout)][device];
  if (int const blocks = cached.load()) return blocks;
  int blocks = 0;
  if (tile.cluster > 1) {
    Attributes attributes(kernel, tile, tile.cluster, false, false, nullptr);
    check_cuda(cudaOccupancyMaxActiveClusters(&blocks, kernel.function, &attributes.launch), "GEMMs that fit");
    blocks *= tile.cluster;
  } else {
    int processors = 0;
    check_cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "multiprocessors");
    check_cuda(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.function, kernel.threads, kernel.shared_bytes),
        "GEMMs that fit");
    blocks *= processors;
  }
  require(blocks > 0,
          "this GPU holds no block of the kernel for tile=" + std::to_string(tile.tile_m) + "x" +
              std::to_string(tile.tile_n),
          ErrorKind::kUnsupported);
  cached = blocks;
  return blocks;
}

void prepare_gemm(TileRow const& tile, DType dtype, WeightLayout layout) {
  cudaFuncAttributes attributes;
  check_cuda(cudaFuncGetAttributes(&attributes, kernel_of(tile, dtype, layout).function), "loading a GEMM");
}

int blocks_of(GemmLaunch const& l) { return blocks_of(l, kernel_of(l.tile, l.weight.dtype, l.layout)); }

void enqueue_gemm(GemmLaunch const& l, CUstream_st* stream) {
  GemmKernel const kernel = kernel_of(l.tile, l.weight.dtype, l.layout);
  if (l.order.size() == 0) return;
  check(l);
  int const blocks = blocks_of(l, kernel);
  require(blocks > 0, "processors=" + std::to_string(l.processors) + " leaves no room for a cluster of " +
                          std::to_string(l.tile.cluster));
  kernel.with_operands(l, [&](void* operands) {
    bool const beside_last =
        l.rows_to_come && l.tile.engine == EngineKind::kSm90;  // the sm80 engine cannot wait for it
    Attributes attributes(kernel, l.tile, blocks, l.cooperative, beside_last, stream);
    void* arguments[] = {operands, const_cast<Schedule*>(&l.order), const_cast<AnyGate*>(&l.gate),
                         const_cast<AnyRoute*>(&l.route)};
    check_cuda(cudaLaunchKernelExC(&attributes.launch, kernel.function, arguments), "launching a GEMM");
  });
}

}  // namespace flux
