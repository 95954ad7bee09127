// The GPU of a rank that is a process. Ranks may be on the same GPU: it then serves their contexts in turn, so that one
// whose kernels wait holds nobody up for longer than its slice of time.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "kernel/check.h"
#include "world/cuda/link_prover.h"
#include "world/cuda/nccl.h"
#include "world/cuda/numa.h"
#include "world/cuda/peer_memory.h"
#include "world/cuda/peers.h"
#include "world/cuda/process_gpu.h"
#include "world/cuda/prove_links.h"
#include "world/ring_order.h"
#include "world/together.h"

namespace flux {
namespace {

// Memory of this rank that nobody else reaches.
class OwnMemory final : public SymmetricMemory {
 public:
  OwnMemory(int rank, std::shared_ptr<std::byte> memory) : memory_(std::move(memory)) {
    blocks_.base[rank] = memory_.get();
  }

 private:
  std::shared_ptr<std::byte> memory_;
};

class ProcessGpu final : public Gpu {
 public:
  /// `tenants`: ranks on this GPU. `cannot_share`: why `sharing` is none.
  ProcessGpu(std::shared_ptr<Gpu> card, Nodes const& nodes, int device, Chip const& chip, Sharing sharing, Peers peers,
             int tenants, std::string cannot_share)
      : card_(std::move(card)),
        nodes_(nodes),
        device_(device),
        chip_(chip),
        sharing_(sharing),
        peers_(peers),
        tenants_(tenants),
        cannot_share_(std::move(cannot_share)) {}

  void activate() const override { card_->activate(); }
  int processors() const override { return chip_.processors; }
  Chip chip() const override { return chip_; }
  bool whole() const override { return processors() == card_->processors(); }
  bool shared() const override { return false; }
  bool mirrored() const override { return false; }
  bool across_pcie() const override { return across_pcie_; }
  bool through_host() const override { return sharing_ == Sharing::kHost; }
  bool spans_nodes() const override { return nodes_.count > 1 && !carries_; }

  std::shared_ptr<SymmetricMemory> allocate(Bootstrap& bootstrap, int64_t bytes, Use use,
                                            double limit_seconds) override {
    if (use == Use::kControl)
      return share_registered(bootstrap, nodes_, device_, bytes, ViewedBy::kHost, limit_seconds);
    if (carries_ || sharing_ == Sharing::kNone || (through_host() && use == Use::kAbort))
      return std::make_shared<OwnMemory>(bootstrap.rank(), card_->allocate(bytes));
    if (through_host()) return share_registered(bootstrap, nodes_, device_, bytes, ViewedBy::kGpu, limit_seconds);
    return (sharing_ == Sharing::kVmm ? share_by_vmm : share_by_ipc)(bootstrap, nodes_, device_, bytes, limit_seconds);
  }
  std::shared_ptr<std::byte> allocate(int64_t bytes) override { return card_->allocate(bytes); }
  void copy(void* to, void const* from, int64_t bytes) const override { card_->copy(to, from, bytes); }

  int64_t room() const override { return card_->room() / tenants_; }
  std::shared_ptr<CUstream_st> stream() const override { return card_->stream(); }
  void settle(Stream stream) const override { card_->settle(stream); }

  std::vector<LinkProof> prove_links(Bootstrap& bootstrap, double limit_seconds) override {
    std::vector<LinkProof> links;
    bool const shared = sharing_ != Sharing::kNone;
    std::string broken = shared ? why_not(bootstrap, links, limit_seconds) : cannot_share_;
    if (broken.empty()) {
      across_pcie_ = cross_pcie(links);
      if (nodes_.count > 1) require_rails(bootstrap, limit_seconds);
      return links;
    }
    if (nodes_.count > 1 && peers_ == Peers::kHost)
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{}=host is for one node, and the ranks are on {}; auto serves over several",
                              kPeersVariable, nodes_.count));
    if (peers_ == Peers::kNccl || nodes_.count > 1)
      return fall_back_on_nccl(bootstrap, broken, shared, limit_seconds), links;
    Sharing const before = std::exchange(sharing_, Sharing::kHost);
    std::vector<LinkProof> by_host;
    std::string const no_way = why_not(bootstrap, by_host, limit_seconds);
    if (no_way.empty()) {
      across_pcie_ = true;
      say(bootstrap, broken, "ranks meet in pinned host memory, and copies go there and from there");
      return by_host;
    }
    sharing_ = before;
    broken += "; and ranks do not meet in host memory: " + no_way;
    if (peers_ == Peers::kHost)
      throw Error(ErrorKind::kDevice, fmt::format("{}. {}=auto goes on to NCCL", broken, kPeersVariable));
    fall_back_on_nccl(bootstrap, broken, shared, limit_seconds);
    return links;
  }
  Nccl* nccl() const override { return carries_ ? nccl_ : nullptr; }
  Nccl& nccl_beside(Bootstrap& bootstrap, double limit_seconds) override {
    if (!nccl_) open_nccl(bootstrap, limit_seconds);
    return *nccl_;
  }
  Nccl& rail(Bootstrap& bootstrap, int lane, int blocks, double limit_seconds) override {
    Nccl*& rail = rails_[lane];
    if (!rail) {
      std::vector<int> ranks;
      for (int node = 0; node < nodes_.count; ++node) ranks.push_back(nodes_.on_node(bootstrap.rank(), node));
      rail = watched(Nccl::open_rail(bootstrap, std::move(ranks), device_, blocks, limit_seconds));
    }
    return *rail;
  }
  std::string trouble(double limit_seconds) override {
    std::lock_guard lock(mutex_);
    for (auto const& nccl : opened_)
      if (auto said = nccl->trouble(limit_seconds); !said.empty()) return said;
    return {};
  }
  void end() override {
    std::lock_guard lock(mutex_);
    for (auto const& nccl : opened_) nccl->end();
  }

 private:
  void open_nccl(Bootstrap& bootstrap, double limit_seconds) {
    require_quiet(bootstrap, limit_seconds);
    together(bootstrap, limit_seconds, [&] {
      if (tenants_ > 1) throw Error(ErrorKind::kUnsupported, "NCCL takes one rank a GPU and several share one here");
    });
    nccl_ = watched(Nccl::open(bootstrap, device_, limit_seconds));
  }
  Nccl* watched(std::shared_ptr<Nccl> opened) {
    std::lock_guard lock(mutex_);
    return opened_.emplace_back(std::move(opened)).get();
  }
  static void require_rails(Bootstrap& bootstrap, double limit_seconds) {
    together(bootstrap, limit_seconds, [] {
      if (auto const missing = no_nccl_for_rails(); !missing.empty())
        throw Error(ErrorKind::kUnsupported, "between nodes NCCL carries what GPUs send, and " + missing);
    });
  }
  /// Why memory shared as `sharing_` says does not serve, the same on every rank; empty: it does.
  std::string why_not(Bootstrap& bootstrap, std::vector<LinkProof>& links, double limit_seconds) {
    try {
      require_quiet(bootstrap, limit_seconds);
      links = flux::prove_links(bootstrap, nodes_, *this, device_, limit_seconds);
      return broken_link(links);
    } catch (Error const& error) {  // also where the driver gives no access to another GPU's memory
      if (error.kind() == ErrorKind::kTimeout) throw;
      return error.what();
    }
  }
  void fall_back_on_nccl(Bootstrap& bootstrap, std::string const& broken, bool shared, double limit_seconds) {
    std::string no_way;
    try {
      open_nccl(bootstrap, limit_seconds);
      carries_ = true;
    } catch (Error const& error) {
      no_way = error.what();
    }
    if (!no_way.empty())
      throw Error(shared ? ErrorKind::kDevice : ErrorKind::kUnsupported,
                  fmt::format("{}; and NCCL does not serve: {}. See `flux doctor`, or run on the host engine (flux run "
                              "--host, WorldOptions::device)",
                              broken, no_way));
    say(bootstrap, broken, "operators go through NCCL, communication and GEMM one after the other");
  }
  /// No attempt that did not end may still be under way, on any rank: nothing would come after it.
  static void require_quiet(Bootstrap& bootstrap, double limit_seconds) {
    together(bootstrap, limit_seconds, [] {
      if (gave_up_on_gpu()) throw Error(ErrorKind::kDevice, "what was sent there is still under way");
    });
  }
  static void say(Bootstrap& bootstrap, std::string const& broken, std::string_view instead) {
    if (bootstrap.rank() == 0) fmt::print(stderr, "flux: {}; {}\n", broken, instead);
  }

  std::shared_ptr<Gpu> card_;
  Nodes nodes_;
  int device_;
  Chip chip_;
  Sharing sharing_;
  Peers peers_;
  int tenants_;
  std::string cannot_share_;
  bool across_pcie_ = false;
  bool carries_ = false;        // NCCL what operators send
  Nccl* nccl_ = nullptr;        // of all ranks, if it is open
  std::map<int, Nccl*> rails_;  // of each lane
  std::mutex mutex_;
  std::vector<std::shared_ptr<Nccl>> opened_;  // all of them, for the world's watcher
};

int visible_gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0, cudaGetLastError();
  return count;
}

}  // namespace

std::shared_ptr<Gpu> open_process_gpu(Bootstrap& bootstrap, Nodes const& nodes, int device, double limit_seconds,
                                      std::optional<Sharing> wanted) {
  std::shared_ptr<Gpu> card;
  nlohmann::json mine;
  Peers const peers = agreed_peers(bootstrap, limit_seconds);
  auto of_gpu = [&](Sharing way, std::string (*cannot)(int)) {
    return peers != Peers::kAuto || wanted.value_or(way) != way ? "not wanted" : cannot(device);
  };
  together(bootstrap, limit_seconds, [&] {
    int const count = visible_gpus();
    // A machine that plays several nodes may have a GPU for each rank.
    int const number = bootstrap.size() <= count ? bootstrap.rank() : nodes.position(bootstrap.rank());
    if (device == kGpuByRank && count > 0) device = ring_order(numa_nodes())[number % count];
    if (device < 0 || device >= count)
      throw Error(ErrorKind::kUnsupported,
                  device == kGpuByRank
                      ? "no GPU is visible here; leave out --gpu (WorldOptions::device) for the host engine"
                      : fmt::format("GPU {} was asked for; {} are visible here", device, count));
    card = open_gpu(device, 1);
    std::string const uuid = uuid_of(device);
    mine = {{"processors", card->processors()},
            {"engine", static_cast<int>(card->chip().engine)},
            {"shared", card->chip().shared_bytes},
            {"fp8", card->chip().fp8},
            {"uuid", std::vector<int>(uuid.begin(), uuid.end())},
            {"vmm", of_gpu(Sharing::kVmm, cannot_share_by_vmm)},
            {"ipc", of_gpu(Sharing::kIpc, cannot_share_by_ipc)}};
  });
  Chip chip = card->chip();  // all ranks choose tiles by the same
  std::set<std::vector<int>> different;
  int tenants = 0;
  std::string no_vmm, no_ipc;
  for (auto const& one : bootstrap.all_gather(mine.dump(), limit_seconds)) {
    auto const theirs = nlohmann::json::parse(one);
    chip.processors = std::min(chip.processors, theirs["processors"].get<int>());
    chip.shared_bytes = std::min(chip.shared_bytes, theirs["shared"].get<int>());
    chip.fp8 = chip.fp8 && theirs["fp8"].get<bool>();
    if (theirs["engine"] == static_cast<int>(EngineKind::kSm80)) chip.engine = EngineKind::kSm80;  // it runs on all
    different.insert(theirs["uuid"].get<std::vector<int>>());
    tenants += theirs["uuid"] == mine["uuid"];
    if (no_vmm.empty()) no_vmm = theirs["vmm"];
    if (no_ipc.empty()) no_ipc = theirs["ipc"];
  }
  std::string cannot_share;
  if (peers != Peers::kAuto)
    cannot_share = fmt::format("{}={}", kPeersVariable, peers == Peers::kHost ? "host" : "nccl");
  else if (!no_vmm.empty() && !no_ipc.empty())
    cannot_share =
        fmt::format("processes cannot share GPU memory here: by virtual memory, {}; by CUDA IPC, {}", no_vmm, no_ipc);
  Sharing const sharing = no_vmm.empty() ? Sharing::kVmm : no_ipc.empty() ? Sharing::kIpc : Sharing::kNone;
  // Copies within one GPU may be kernels, and a GEMM that waits for them must leave them room.
  constexpr int kSpare = 12;
  if (static_cast<int>(different.size()) < bootstrap.size()) chip.processors = std::max(chip.processors - kSpare, 2);
  return std::make_shared<ProcessGpu>(std::move(card), nodes, device, chip, sharing, peers, tenants, cannot_share);
}

std::shared_ptr<Gpu> open_process_gpu(Bootstrap& bootstrap, Nodes const& nodes, int device, double limit_seconds) {
  return open_process_gpu(bootstrap, nodes, device, limit_seconds, std::nullopt);
}

}  // namespace flux
