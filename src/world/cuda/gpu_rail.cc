#include "world/cuda/gpu_rail.h"

#include <algorithm>
#include <memory>

#include "kernel/call.h"
#include "kernel/check.h"
#include "world/cuda/nccl.h"
#include "world/cuda/peer_memory.h"
#include "world/team.h"

namespace flux {

GpuRail::GpuRail(Team& team, int lane, int blocks)
    : nodes_(team.nodes()),
      rank_(team.rank()),
      nccl_(team.gpu()->rail(team.bootstrap(), lane, blocks, team.options().limit_seconds)) {
  check_cuda(cudaEventCreateWithFlags(&ordered_, cudaEventDisableTiming), "an event");
}

GpuRail::~GpuRail() {
  if (!gave_up_on_gpu()) cudaEventDestroy(ordered_);
}

void GpuRail::order(Stream earlier, Stream later) {
  check_cuda(cudaEventRecord(ordered_, earlier), "ordering streams");
  check_cuda(cudaStreamWaitEvent(later, ordered_), "ordering streams");
}

void GpuRail::fork(Stream caller) { order(caller, travels_), order(caller, made_); }

void GpuRail::join(Stream caller) { order(made_, travels_), order(travels_, caller); }

void GpuRail::exchange(std::function<Pieces(int)> const& out, std::function<Pieces(int)> const& in, Watch const& watch,
                       std::function<void(int, size_t, Stream)> const& make) {
  for (int d = 1; d < nodes_.count; ++d) {
    int const to = nodes_.ahead(rank_, d), from = nodes_.behind(rank_, d);
    Pieces const leaving = out(to), coming = in(from);
    for (size_t i = 0; i < std::max(leaving.size(), coming.size()); ++i) {
      bool const leaves = i < leaving.size(), comes = i < coming.size();
      if (make && leaves) make(to, i, made_), order(made_, travels_);
      step(leaves ? &leaving[i] : nullptr, comes ? &coming[i] : nullptr, watch);
    }
  }
}

void GpuRail::step(Piece const* out, Piece const* in, Watch const& watch) {
  std::vector<Nccl::Piece> sends, receives;
  if (out) sends.push_back({const_cast<std::byte*>(out->from), out->rows * out->row_bytes, out->peer});
  if (in) receives.push_back({in->to, in->rows * in->row_bytes, in->awaited_from});
  TimedCopy timed;
  if (timed_) timed = {in ? *in : *out, std::make_shared<Moment>(travels_), {}};
  nccl_.exchange(sends, receives, travels_);
  if (timed_) timed.end = std::make_shared<Moment>(travels_), timed_->push_back(timed);
  if (in) enqueue_tell(in->set, in->words, in->goal, watch, travels_);
}

}  // namespace flux
