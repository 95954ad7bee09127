// The GPU of a rank that is a process. Ranks may be on the same GPU: it then serves their contexts in turn, so that one
// whose kernels wait holds nobody up for longer than its slice of time.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "kernel/check.h"
#include "world/cuda/link_prover.h"
#include "world/cuda/peer_memory.h"
#include "world/cuda/process_gpu.h"
#include "world/cuda/prove_links.h"
#include "world/together.h"

namespace flux {
namespace {

class ProcessGpu final : public Gpu {
 public:
  ProcessGpu(std::shared_ptr<Gpu> card, int device, int processors, Sharing sharing)
      : card_(std::move(card)), device_(device), processors_(processors), sharing_(sharing) {}

  void activate() const override { card_->activate(); }
  int processors() const override { return processors_; }
  bool whole() const override { return processors_ == card_->processors(); }
  bool shared() const override { return false; }
  bool mirrored() const override { return false; }
  bool across_pcie() const override { return across_pcie_; }

  std::shared_ptr<SymmetricMemory> allocate(Bootstrap& bootstrap, int64_t bytes, Use use,
                                            double limit_seconds) override {
    if (use == Use::kControl) return share_registered(bootstrap, device_, bytes, limit_seconds);
    return (sharing_ == Sharing::kVmm ? share_by_vmm : share_by_ipc)(bootstrap, device_, bytes, limit_seconds);
  }
  std::shared_ptr<std::byte> allocate(int64_t bytes) override { return card_->allocate(bytes); }
  void copy(void* to, void const* from, int64_t bytes) const override { card_->copy(to, from, bytes); }

  std::shared_ptr<CUstream_st> stream() const override { return card_->stream(); }
  void settle(Stream stream) const override { card_->settle(stream); }

  std::vector<LinkProof> prove_links(Bootstrap& bootstrap, double limit_seconds) override {
    auto links = flux::prove_links(bootstrap, *this, device_, limit_seconds);
    across_pcie_ = cross_pcie(links);
    return links;
  }

 private:
  std::shared_ptr<Gpu> card_;
  int device_, processors_;
  Sharing sharing_;
  bool across_pcie_ = false;
};

int visible_gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0, cudaGetLastError();
  return count;
}

}  // namespace

std::shared_ptr<Gpu> open_process_gpu(Bootstrap& bootstrap, int device, double limit_seconds,
                                      std::optional<Sharing> wanted) {
  std::shared_ptr<Gpu> card;
  nlohmann::json mine;
  together(bootstrap, limit_seconds, [&] {
    int const count = visible_gpus();
    if (device == kGpuByRank && count > 0) device = bootstrap.rank() % count;
    if (device < 0 || device >= count)
      throw Error(ErrorKind::kUnsupported,
                  device == kGpuByRank
                      ? "no GPU is visible here; leave out --gpu (WorldOptions::device) for the host engine"
                      : fmt::format("GPU {} was asked for; {} are visible here", device, count));
    card = open_gpu(device, 1);
    std::string const uuid = uuid_of(device);
    mine = {{"processors", card->processors()},
            {"uuid", std::vector<int>(uuid.begin(), uuid.end())},
            {"vmm", wanted == Sharing::kIpc ? "not wanted" : cannot_share_by_vmm(device)},
            {"ipc", wanted == Sharing::kVmm ? "not wanted" : cannot_share_by_ipc(device)}};
  });
  int processors = card->processors();
  std::set<std::vector<int>> different;
  std::string no_vmm, no_ipc;
  for (auto const& one : bootstrap.all_gather(mine.dump(), limit_seconds)) {
    auto const theirs = nlohmann::json::parse(one);
    processors = std::min(processors, theirs["processors"].get<int>());
    different.insert(theirs["uuid"].get<std::vector<int>>());
    if (no_vmm.empty()) no_vmm = theirs["vmm"];
    if (no_ipc.empty()) no_ipc = theirs["ipc"];
  }
  if (!no_vmm.empty() && !no_ipc.empty())
    throw Error(ErrorKind::kUnsupported,
                fmt::format("processes cannot share GPU memory here: by virtual memory, {}; by CUDA IPC, {}; use the "
                            "host engine, or ranks that are threads (run_devices)",
                            no_vmm, no_ipc));
  // Copies within one GPU may be kernels, and a GEMM that waits for them must leave them room. All ranks choose tiles
  // by the same number.
  constexpr int kSpare = 12;
  if (static_cast<int>(different.size()) < bootstrap.size()) processors = std::max(processors - kSpare, 2);
  return std::make_shared<ProcessGpu>(std::move(card), device, processors,
                                      no_vmm.empty() ? Sharing::kVmm : Sharing::kIpc);
}

std::shared_ptr<Gpu> open_process_gpu(Bootstrap& bootstrap, int device, double limit_seconds) {
  return open_process_gpu(bootstrap, device, limit_seconds, std::nullopt);
}

}  // namespace flux
