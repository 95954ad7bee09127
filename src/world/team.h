#pragma once
// What the ranks of a world share: control words, memory, the log of calls, and one watcher a rank that notices what a
// waiting rank cannot: a peer that is gone, a peer that makes another call, a wait that has become long.
#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "flux/world.h"
#include "tile/signal.h"
#include "world/copy_engine.h"
#include "world/gpu.h"
#include "world/rails.h"
#include "world/rank_zero.h"
#include "world/symmetric_memory.h"

namespace flux {

class PlanTable;  // src/op/tuned_plans.h

/// Calls on one lane come in the same order on every rank; a thread that calls operators beside another takes a lane of
/// its own (a GPU stream, on GPUs).
inline constexpr int kLanes = 8;

class Team {
 public:
  /// `gpu`: where this rank's operators run; none: on the host.
  Team(std::unique_ptr<Bootstrap> bootstrap, Nodes const& nodes, MemoryKind kind, WorldOptions const& options,
       std::shared_ptr<Gpu> gpu = nullptr);
  ~Team();

  int rank() const { return bootstrap_->rank(); }
  int size() const { return bootstrap_->size(); }
  Nodes const& nodes() const { return nodes_; }
  /// The ranks of this node, ours among them: those whose memory is within reach.
  auto neighbours() const { return nodes_.neighbours(rank()); }
  MemoryKind kind() const { return kind_; }
  Gpu* gpu() const { return gpu_.get(); }
  std::vector<LinkProof> const& links() const { return links_; }
  WorldOptions& options() { return options_; }
  Bootstrap& bootstrap() { return *bootstrap_; }
  LinkClock& link_clock() { return link_clock_; }
  LinkClock& nic_clock() { return nic_clock_; }
  FromRankZero const& from_rank_zero() const { return from_rank_zero_; }

  std::vector<std::string> all_gather(std::string_view mine);
  /// Where this rank's operators run: GPU memory, if there is a GPU.
  std::shared_ptr<SymmetricMemory> allocate(int64_t bytes, Use use);
  /// A connection with a rank of our position on another node; `number`: as next_operator() gives it, on both ranks.
  Socket connect_rail(int peer, uint32_t number) { return rails_->connect(peer, number, options_.limit_seconds); }
  /// Whether it has left in good order, so that nothing more comes from it.
  bool rail_left(int peer) const { return rails_->left(peer); }
  /// A number for a new operator, the same on every rank.
  uint32_t next_operator() { return ++operators_; }

  /// What this rank waits for at the moment.
  Record& record() { return control(rank()).record; }
  /// Posts (number of the call on its lane, digest) to every peer. Throws where a peer is seen to make another call.
  Watch begin_call(int lane, Word digest);
  /// Throws the error that ended the world, if one did.
  void check() const;
  /// Ends the world for every rank: this rank failed for a reason of its own.
  void fail();

  std::shared_ptr<PlanTable> plan_table;  ///< the operators'

 private:
  // One a rank, in symmetric memory. `calls` are the entries its peers posted: number << 32 | digest. One a peer will
  // do: a call ends only after every rank has begun it, so nobody is two calls ahead.
  struct Control {
    Word abort, left;
    int32_t pid;
    Record record;
    char said[1024];  // why the world has ended, where this rank's host found out
    uint64_t calls[kLanes][kMaxRanks];
  };
  Control& control(int rank) const { return *reinterpret_cast<Control*>(memory_->at(rank)); }
  Control& control_on_gpu(int rank) const { return *reinterpret_cast<Control*>(memory_->on_gpu(rank)); }
  Watch watch(Word call) const;
  Watch host_watch(Word call) const;
  void say_and_raise(std::string const& why);
  void raise_gone(int peer);
  bool sees_other_call(int lane);
  bool hears_of_an_end();
  void watch_peers();
  bool look_at_peers(int round);  // false: nothing more to watch for
  void warn_of_long_wait();
  std::string describe(Word verdict) const;
  std::string describe(Reason reason, int raiser, Record& record) const;
  std::string wait_of(int rank) const;
  std::string chain_of_waits(int raiser) const;

  std::unique_ptr<Bootstrap> bootstrap_;
  Nodes nodes_;
  MemoryKind kind_;
  WorldOptions options_;
  std::shared_ptr<SymmetricMemory> memory_;  // of Control
  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<SymmetricMemory> gpu_abort_;  // one word a rank, where kernels look; others' may be out of reach
  std::vector<LinkProof> links_;
  FromRankZero from_rank_zero_;
  std::unique_ptr<Rails> rails_;  // where there are several nodes
  LinkClock link_clock_, nic_clock_;
  uint32_t operators_ = 0;
  std::array<std::atomic<uint64_t>, kLanes> calls_{};  // our own latest entry
  std::string warned_;
  Word left_since_ms_[kMaxRanks] = {};  // how long we had waited for a peer when we saw that it had left
  std::mutex saying_, mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread watcher_;
};

}  // namespace flux
