#pragma once
// Rows between a GPU and those of its position on other nodes, in streams beside the caller's: what src/world/rail.h is
// on the host. NCCL carries them.
#include <functional>
#include <vector>

#include "world/cuda/copy_stream.h"
#include "world/nodes.h"

namespace flux {

class Nccl;
class Team;

class GpuRail {
 public:
  /// Rows that go or come in one piece, one right behind the other, and how many words are set behind them.
  struct Piece : Transfer {
    int words = 1;
  };
  using Pieces = std::vector<Piece>;

  /// Collective. Operators of a lane share a communicator: their calls come in the same order on every rank. It takes
  /// at most `blocks` multiprocessors.
  GpuRail(Team& team, int lane, int blocks);
  ~GpuRail();
  GpuRail(GpuRail const&) = delete;

  /// As CopyStream's.
  void fork(Stream caller);
  void join(Stream caller);
  /// Exchanges with each peer what `out` lists for it, and `in` of it: on both sides the same, in the same order. A
  /// piece that goes and one that comes go together, so ranks do not wait for each other in a circle. What goes is
  /// here, or `make(peer, i, stream)` enqueues its making: the next piece is made while this one is on its way.
  void exchange(std::function<Pieces(int peer)> const& out, std::function<Pieces(int peer)> const& in,
                Watch const& watch, std::function<void(int peer, size_t piece, Stream stream)> const& make = {});
  /// Keeps the times of each piece from now on; null: no more.
  void record(std::vector<TimedCopy>* to) { timed_ = to; }

 private:
  void step(Piece const* out, Piece const* in, Watch const& watch);
  void order(Stream earlier, Stream later);

  Nodes nodes_;
  int rank_;
  Nccl& nccl_;
  KeptStream travels_, made_;
  CUevent_st* ordered_ = nullptr;
  std::vector<TimedCopy>* timed_ = nullptr;
};

}  // namespace flux
