#pragma once
// The connections between nodes: a rank has some with each rank of its position on another node. One for the world,
// which tells how a rank ended; one for each operator, with the rows (src/world/rail.h).
#include <atomic>
#include <map>
#include <optional>

#include "world/nodes.h"
#include "world/stream.h"

namespace flux {

/// This machine's addresses in the order in which others try them, or the one that FLUX_ADDRESS names.
std::vector<std::string> own_addresses();

class Rails {
 public:
  /// Collective. Listens, tells the others where, and connects. Throws the same Error on every rank.
  Rails(Bootstrap& bootstrap, Nodes const& nodes, double limit_seconds);

  /// A connection with `peer`, who asks for the same number. Numbers are not used twice. Throws Error{kTimeout}.
  Socket connect(int peer, uint32_t number, double limit_seconds);

  /// How a peer ended: `said` is its last word, nothing where it had none, as of a process that was killed.
  struct Ending {
    int peer;
    std::string said;
  };
  /// An ending that is news. Never waits. Peers that left in good order are none.
  std::optional<Ending> news();
  /// Whether it left in good order, as far as news() has heard.
  bool left(int peer) const { return lines_.at(peer).left; }
  /// This rank's last word to all peers: why the world ended for it; empty: it leaves in good order. Only the first is
  /// sent.
  void end(std::string_view why);

 private:
  Socket dial(int peer, uint32_t number, GiveUp const& give_up) const;
  Socket answer(int peer, uint32_t number, GiveUp const& give_up);

  struct Door {  // where a rank listens
    uint64_t token = 0;
    uint16_t port = 0;
    std::vector<std::string> addresses;
  };
  struct Line {  // the world's connection with a peer
    Socket socket;
    std::string said;
    bool over = false;
    std::atomic<bool> left{false};
  };
  int rank_;
  Socket listener_;
  std::map<int, Door> doors_;  // by rank: ours and our peers'
  std::map<int, Line> lines_;
  std::map<std::pair<int, uint32_t>, Socket> early_;  // connections that are not asked for yet
  bool ended_ = false;
};

}  // namespace flux
