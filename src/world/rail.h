#pragma once
// Rows between a rank and those of its position on other nodes: one operator's. What one lists to send the other lists
// to receive, in the same order; each has a thread for every peer and way, so rows travel while the GEMM runs.
#include "world/copy_engine.h"
#include "world/stream.h"

namespace flux {

class Team;

class Rail {
 public:
  /// Collective over the ranks of this position, in the same order as other rails of the world.
  Rail(Team& team, uint32_t number);
  ~Rail();

  /// Transfers of one call, in order. Each waits for its word `after`, then its rows go. Never blocks.
  void send(int peer, std::vector<Transfer> rows, Watch const& watch, std::vector<TransferSpan>* spans = nullptr);
  /// Where the rows that `peer` sends in this call go; behind each its word is set.
  void receive(int peer, std::vector<Transfer> rows, Watch const& watch);
  /// Returns when all of it is done or given up.
  void drain();

 private:
  class End;
  End& end(int peer) const { return *ends_.at(peer); }
  std::vector<std::unique_ptr<End>> ends_;  // by rank; none where there is no rail
};

}  // namespace flux
