#include "world/rail.h"

#include <cstring>
#include <memory>

#include "world/team.h"

namespace flux {
namespace {

// Before the rows of a transfer: whose call they belong to, and how many bytes come.
struct Header {
  Word digest;
  Word row;
  uint64_t bytes;
};

// Rows that do not lie one behind the other are packed for the way.
std::byte* packed(std::vector<std::byte>& panel, Transfer const& t) {
  panel.resize(static_cast<size_t>(t.rows * t.row_bytes));
  return panel.data();
}

}  // namespace

// The connection with one peer, and the two threads that serve it.
class Rail::End {
 public:
  End(Team& team, int peer, Socket socket)
      : team_(team),
        peer_(peer),
        socket_(std::move(socket)),
        out(no_link_, [this](Transfer const& t, Watch const& w) { return send(t, w); }),
        in(no_link_, [this](Transfer const& t, Watch const& w) { return receive(t, w); }) {}

  /// A transfer waits for this rank's own work first, whose waits name whom they wait for and end at the limit: so this
  /// one keeps its record to itself, and gives up later.
  Watch behind_own_work(Watch watch) {
    watch.record = &own_;
    watch.limit_ns += watch.limit_ns / 4;
    return watch;
  }

 private:
  bool send(Transfer const& t, Watch const& watch) {
    team_.nic_clock().pass(team_.options().nic, now_ns(), t.rows * t.row_bytes);
    Header const header{t.goal, static_cast<Word>(t.row), static_cast<uint64_t>(t.rows * t.row_bytes)};
    std::byte const* rows = t.from;
    if (t.row_bytes != t.from_stride) {
      std::byte* const to = packed(leaving_, t);
      for (int64_t i = 0; i < t.rows; ++i) std::memcpy(to + i * t.row_bytes, t.from + i * t.from_stride, t.row_bytes);
      rows = to;
    }
    return moved(t, watch, [&](GiveUp const& give_up) {
      return send_all(socket_.fd(), &header, sizeof header, give_up) &&
             send_all(socket_.fd(), rows, header.bytes, give_up);
    });
  }

  bool receive(Transfer const& t, Watch const& watch) {
    Header header{};
    if (!moved(t, watch, [&](GiveUp const& g) { return receive_all(socket_.fd(), &header, sizeof header, g); }))
      return false;
    if (header.digest != t.goal || header.bytes != static_cast<uint64_t>(t.rows * t.row_bytes)) {
      note(watch, t.awaited, peer_, t.row, header.digest, t.goal, 0);
      raise_abort(watch, Reason::kOtherCall);
      return false;
    }
    bool const as_is = t.row_bytes == t.to_stride;
    std::byte* const to = as_is ? t.to : packed(coming_, t);
    if (!moved(t, watch, [&](GiveUp const& g) { return receive_all(socket_.fd(), to, header.bytes, g); })) return false;
    for (int64_t i = 0; !as_is && i < t.rows; ++i)
      std::memcpy(t.to + i * t.to_stride, to + i * t.row_bytes, t.row_bytes);
    return true;
  }

  // Waits end as those for words do: with the world, at the limit, or because the peer has left.
  template <class Move>
  bool moved(Transfer const& t, Watch const& watch, Move&& move) {
    int64_t const start = now_ns();
    bool late = false;
    auto give_up = [&] { return aborted(watch) || (late = now_ns() - start > watch.limit_ns); };
    if (move(give_up)) return true;
    // A peer whose world has ended closes this too: its last word, which is on its way, says why.
    while (!give_up() && !team_.rail_left(peer_)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (aborted(watch)) return false;
    Watch told = watch;
    told.record = &team_.record();
    note(told, t.awaited, peer_, t.row, 0, t.goal, now_ns() - start);
    raise_abort(told, late ? Reason::kTimeout : Reason::kPeerGone);
    return false;
  }

  Team& team_;
  int peer_;
  Socket socket_;
  Record own_{};
  LinkClock no_link_;
  std::vector<std::byte> leaving_, coming_;

 public:
  CopyEngine out, in;  // behind what their threads use
};

Rail::Rail(Team& team, uint32_t number) {
  Nodes const& nodes = team.nodes();
  ends_.resize(static_cast<size_t>(team.size()));
  for (int node = 0; node < nodes.count; ++node) {
    int const peer = nodes.on_node(team.rank(), node);
    if (peer != team.rank()) ends_[peer] = std::make_unique<End>(team, peer, team.connect_rail(peer, number));
  }
}
Rail::~Rail() = default;

void Rail::send(int peer, std::vector<Transfer> rows, Watch const& watch, std::vector<TransferSpan>* spans) {
  end(peer).out.enqueue(std::move(rows), {}, end(peer).behind_own_work(watch), spans);
}
void Rail::receive(int peer, std::vector<Transfer> rows, Watch const& watch) {
  end(peer).in.enqueue(std::move(rows), {}, watch);
}
void Rail::drain() {
  for (auto const& end : ends_)
    if (end) end->out.drain(), end->in.drain();
}

}  // namespace flux
