// The machines that ship with FLUX, eight GPUs each where not said otherwise. Every number has a source; what nobody
// published and nobody here measured is called assumed. docs/simulator.md has the list in words.
#include "plan/machine.h"

namespace flux {
namespace {

// Peak rates and memory: NVIDIA's data sheets of each GPU (dense 16-bit tensor rate with fp32 accumulation, memory
// bandwidth, link). "paper": arXiv 2406.06858; "its repository": the operation times at m = 4096 published there.
constexpr char kH200[] =
    "GEMM clocks, copies and calls fitted to bench/results of one H200, NVLink rates measured on two; NCCL at 8 ranks "
    "assumed";
constexpr char kMirror[] =
    "one H200, its peers in pinned host memory across PCIe 5 x16, as flux bench --mirror pcie measures it; fitted to "
    "bench/results";
constexpr char kH100[] = "an H200 with the data sheet's memory rate of an H100 SXM (3.35 TB/s)";
constexpr char kH800[] =
    "an H100 with links of 400 GB/s (both ways, data sheet); GEMM and NCCL rate from the published times at m = 4096";
constexpr char kA100Sxm[] =
    "data sheet: 312 TFLOP/s, 2.04 TB/s, NVLink 600 GB/s both ways; NCCL rate assumed as A800's by the links' ratio";
constexpr char kA100Pcie[] =
    "data sheet: 312 TFLOP/s, 1.94 TB/s, PCIe 4 x16; clock under 300 W assumed, copy and NCCL rate from the paper's E "
    "of "
    "41 to 57 % there, which where the link is the floor is GEMM over NCCL";
constexpr char kA800[] =
    "an A100 SXM with links of 400 GB/s (both ways, data sheet); GEMM and NCCL rate from the published times at m = "
    "4096";
constexpr char kL20[] =
    "data sheet: 119.5 TFLOP/s, 864 GB/s, PCIe 4 x16; GEMM and NCCL rate from the published times at m = 4096, copy "
    "rate assumed";
constexpr char kRtx4090[] =
    "data sheet: 165 TFLOP/s with fp32 accumulation, 1.01 TB/s, PCIe 4 x16; no peer access, so rates through host "
    "memory, assumed";

// kind; push, pull, store, load, blocks; start, copy, word, flag; collective rate and time; beside
constexpr LinkRates kNvlink900{LinkKind::kNvlink, 392, 389, 365, 337, 365, 2, 2.5, 3, 1.3, 330, 35, 0.98};
constexpr LinkRates kNvlink600{LinkKind::kNvlink, 262, 260, 244, 225, 244, 2, 2.5, 3, 1.3, 213, 35, 0.98};
constexpr LinkRates kNvlink400{LinkKind::kNvlink, 174, 173, 162, 150, 162, 2, 2.5, 3, 1.3, 161, 35, 0.98};
constexpr LinkRates kPcie5{LinkKind::kPcie, 49.5, 49.0, 21, 45, 36, 8, 4.4, 3.2, 2.0, 49.0, 66.5, 0.95};
constexpr LinkRates kPcie4{LinkKind::kPcie, 20, 20, 18, 18, 18, 20, 2.6, 3.4, 2.5, 18, 40, 0.95};

Machine gpu(char const* name, char const* source, EngineKind engine, int processors, double products, double clock,
            double sustained, double memory, LinkRates const& link) {
  Machine m{name, source,    engine, processors, products, clock, sustained, 1.0, memory,
            50e6, 227 << 10, true,   4.5,        10,       0.99,  false,     link};
  if (engine == EngineKind::kSm80) m.l2_bytes = 40e6, m.shared_bytes = 163 << 10, m.fp8 = false;  // an A100's
  m.library_speed = engine == EngineKind::kSm90 ? 1.014 : 1.0;  // docs/engines.md: ours is 0.986
  return m;
}

std::vector<Machine> make() {
  std::vector<Machine> list;
  list.push_back(gpu("h200", kH200, EngineKind::kSm90, 132, 2048, 1530, 1290, 4270, kNvlink900));
  list.push_back(gpu("h200-pcie", kMirror, EngineKind::kSm90, 132, 2048, 1530, 1290, 4270, kPcie5));
  list.push_back(gpu("h100", kH100, EngineKind::kSm90, 132, 2048, 1530, 1290, 3000, kNvlink900));
  list.push_back(gpu("h800", kH800, EngineKind::kSm90, 132, 2048, 1410, 1410, 3000, kNvlink400));
  list.push_back(gpu("a100-sxm", kA100Sxm, EngineKind::kSm80, 108, 1024, 1300, 1300, 1750, kNvlink600));
  list.push_back(gpu("a800", kA800, EngineKind::kSm80, 108, 1024, 1300, 1300, 1750, kNvlink400));
  list.push_back(gpu("a100-pcie", kA100Pcie, EngineKind::kSm80, 108, 1024, 1150, 1150, 1700, kPcie4));
  list.push_back(gpu("l20", kL20, EngineKind::kSm80, 92, 256, 2500, 2500, 750, kPcie4));
  list.push_back(gpu("rtx4090", kRtx4090, EngineKind::kSm80, 128, 256, 2450, 2450, 880, kPcie4));
  list[1].mirror = true;
  list[7].l2_bytes = 96e6, list[8].l2_bytes = 72e6;
  list[7].shared_bytes = list[8].shared_bytes = 99 << 10;
  list[7].fp8 = list[8].fp8 = true;
  list[5].link.collective_gbps = 142;
  list[8].link.kind = LinkKind::kHost;
  list[7].link.collective_gbps = 7.7;
  list[8].link.push_gbps = list[8].link.pull_gbps = list[8].link.store_gbps = list[8].link.load_gbps =
      list[8].link.block_gbps = 10;
  // Between nodes, assumed: an interface for each GPU, of 400 Gb/s where GPUs are Hopper's, of 200 with an A100 SXM, of
  // 100 on PCIe; nine tenths of that reached, and 8 us from node to node.
  constexpr double kReached = 0.9, kNodeUs = 8;
  for (Machine& m : list) {
    double const gbits = m.engine == EngineKind::kSm90 ? 400 : m.link.kind == LinkKind::kNvlink ? 200 : 100;
    if (!m.mirror && m.link.kind != LinkKind::kHost) m.nic_gbps = kReached * gbits / 8, m.nic_us = kNodeUs;
  }
  return list;
}

}  // namespace

std::vector<Machine> const& named_machines() {
  static std::vector<Machine> const all = make();
  return all;
}

}  // namespace flux
