#include "op/gather.h"

#include <algorithm>

#include "op/checks.h"

namespace flux {

ArrivalWords arrival_words(int64_t m, int64_t k, int ranks, int64_t unit, Plan const& plan) {
  bool const remote = plan.transport == Transport::kRemote;
  ArrivalWords words;
  words.shards = {m, ranks, 1};
  words.slices = {k, remote ? 1 : plan.k_slices, unit};
  int64_t const whole = std::max<int64_t>(words.shards.largest(), 1);
  words.comm_rows = plan.comm_rows == 0 || remote ? whole : std::min(plan.comm_rows, whole);
  return words;
}

int64_t most_arrival_words(int64_t max_m, int64_t k, int ranks, int64_t unit, Plan const& plan) {
  // A small m has few rows a shard, but no fewer communication tiles than one.
  return std::max(arrival_words(max_m, k, ranks, unit, plan).size(), arrival_words(1, k, ranks, unit, plan).size());
}

void require_k_on_gpu(AllGatherGemm::Shape const& shape) {
  int64_t const unit = k_unit(shape.dtype);
  require(shape.k % unit == 0, "k is {}; on GPUs it is a multiple of {}", shape.k, unit);
}

namespace {

/// A piece of a shard: a communication tile's slice of k.
struct Piece {
  int64_t row, rows, first;  // the first row in all and in its shard
  int64_t column, bytes;     // of its rows
  int64_t word;              // its index among arrivals
};

template <class Act>
void each_piece(Gather const& g, int shard, Rows sliced, Act&& act) {
  Shards const &shards = g.layout.shards, &slices = g.layout.slices;
  for (int64_t tile = 0; tile * g.layout.comm_rows < shards.size(shard); ++tile)
    for (int s = static_cast<int>(sliced.first); s < sliced.end(); ++s) {
      int64_t const first = tile * g.layout.comm_rows;
      act(Piece{shards.begin(shard) + first, std::min(g.layout.comm_rows, shards.size(shard) - first), first,
                slices.begin(s) * g.element_bytes, slices.size(s) * g.element_bytes, g.layout.index(shard, tile, s)});
    }
}

/// Its copy, but for from where to where, and words.
Transfer copy_of(Gather const& g, Piece const& p) {
  Transfer t;
  t.row = p.row, t.rows = p.rows, t.row_bytes = p.bytes, t.to_stride = t.from_stride = g.row_bytes;
  t.goal = g.goal, t.awaited = Awaited::kRows;
  return t;
}

std::byte const* own_rows(Gather const& g, Piece const& p) { return g.own + p.first * g.own_stride + p.column; }
std::byte* in_buffer(Gather const& g, int rank, Piece const& p) {
  return g.buffers.at(rank) + p.row * g.row_bytes + p.column;
}
std::byte* in_box(Gather const& g, int rank, Piece const& p) {
  return g.boxes.at(rank) + p.first * g.row_bytes + p.column;
}
/// act(slices) for all slices; where shards are of one piece, a tile may need all of them: then slice by slice, as what
/// it multiplies first comes first from everybody.
template <class Act>
void in_turns(Gather const& g, Act&& act) {
  int const slices = g.layout.slices.ranks;
  bool const by_slice = g.layout.tiles() == 1 && g.plan.path == Path::kDirect;
  for (int s = 0; s < (by_slice ? slices : 1); ++s) act(by_slice ? Rows{s, 1} : Rows{0, slices});
}

}  // namespace

std::vector<Transfer> copies(Gather const& g) {
  int const rank = g.rank, ranks = g.layout.shards.ranks;
  std::vector<Transfer> list;
  // One shard from rank `from` to rank `to`; `after` gives the word of ours to wait for, if any.
  auto send = [&](int shard, int from, int to, int awaited_from, Rows sliced, auto&& after) {
    bool const own = shard == rank && from == rank;
    each_piece(g, shard, sliced, [&](Piece const& piece) {
      Transfer t = copy_of(g, piece);
      if (own) t.from_stride = g.own_stride;
      t.from = own ? own_rows(g, piece) : in_buffer(g, from, piece);
      t.to = in_buffer(g, to, piece);
      t.after = after(piece), t.awaited_from = awaited_from, t.peer = to == rank ? -1 : to;
      t.set = g.words.at(to) + piece.word;
      list.push_back(t);
    });
  };
  auto send_all = [&](Rows slices) {
    for (int i = 1; i < ranks; ++i) {
      if (g.plan.path == Path::kRing) {  // what came from the left goes on to the right
        int const shard = (rank - i + 1 + ranks) % ranks;
        send(shard, rank, (rank + 1) % ranks, (rank - 1 + ranks) % ranks, slices,
             [&](Piece const& piece) { return shard == rank ? nullptr : g.words.at(rank) + piece.word; });
      } else if (g.plan.transport == Transport::kPush) {
        send(rank, rank, (rank + i) % ranks, rank, slices, [](Piece const&) { return nullptr; });
      } else {
        int const source = (rank - i + ranks) % ranks;
        send(source, source, rank, source, slices,
             [&](Piece const&) { return g.readable ? const_cast<Word*>(g.readable) + source : nullptr; });
      }
    }
  };
  in_turns(g, send_all);
  return list;
}

std::vector<Transfer> to_box(Gather const& g) {
  int const rank = g.rank, ranks = g.layout.shards.ranks;
  std::vector<Transfer> list;
  each_piece(g, rank, {0, g.layout.slices.ranks}, [&](Piece const& piece) {
    Transfer t = copy_of(g, piece);
    t.from = own_rows(g, piece), t.from_stride = g.own_stride, t.to = in_box(g, rank, piece);
    for (int i = 1; i < ranks; ++i) {  // one copy, and a word for each that awaits it
      t.peer = (rank + i) % ranks, t.set = g.words.at(t.peer) + piece.word;
      list.push_back(t);
      t.to = nullptr;
    }
  });
  return list;
}

std::vector<Transfer> from_boxes(Gather const& g) {
  int const rank = g.rank, ranks = g.layout.shards.ranks;
  std::vector<Transfer> list;
  in_turns(g, [&](Rows slices) {
    for (int i = 1; i < ranks; ++i) {
      int const source = (rank - i + ranks) % ranks;
      each_piece(g, source, slices, [&](Piece const& piece) {
        Transfer t = copy_of(g, piece);
        t.from = in_box(g, source, piece), t.to = in_buffer(g, rank, piece);
        t.after = g.filled + piece.word, t.awaited_from = source;
        t.set = g.words.at(rank) + piece.word;
        list.push_back(t);
      });
    }
  });
  return list;
}

namespace {

/// To the i-th neighbour in the node.
Transfer to_neighbour(Gather const& g, Nodes const& nodes, Piece const& piece, int i) {
  Transfer t = copy_of(g, piece);
  t.peer = nodes.neighbour(g.rank, i);
  t.to = in_buffer(g, t.peer, piece), t.set = g.words.at(t.peer) + piece.word;
  return t;
}

}  // namespace

std::vector<Transfer> copies_in_node(Gather const& g, Nodes const& nodes) {
  std::vector<Transfer> list;
  for (int i = 1; i < nodes.size(); ++i)
    each_piece(g, g.rank, {0, g.layout.slices.ranks}, [&](Piece const& piece) {
      list.push_back(to_neighbour(g, nodes, piece, i));
      list.back().from = own_rows(g, piece), list.back().from_stride = g.own_stride;
    });
  return list;
}

std::vector<Transfer> handed_on(Gather const& g, Nodes const& nodes) {
  std::vector<Transfer> list;
  for (int d = 1; d < nodes.count; ++d) {
    int const shard = nodes.behind(g.rank, d);
    each_piece(g, shard, {0, g.layout.slices.ranks}, [&](Piece const& piece) {
      for (int i = 1; i < nodes.size(); ++i) {
        Transfer t = to_neighbour(g, nodes, piece, i);
        t.from = in_buffer(g, g.rank, piece), t.after = g.words.at(g.rank) + piece.word, t.awaited_from = shard;
        list.push_back(t);
      }
    });
  }
  return list;
}

std::vector<Transfer> sent_along_rail(Gather const& g, int peer) {
  std::vector<Transfer> list;
  each_piece(g, g.rank, {0, g.layout.slices.ranks}, [&](Piece const& piece) {
    Transfer t = copy_of(g, piece);
    t.from = own_rows(g, piece), t.from_stride = g.own_stride, t.awaited_from = t.peer = peer;
    list.push_back(t);
  });
  return list;
}

std::vector<Transfer> received_along_rail(Gather const& g, int peer) {
  std::vector<Transfer> list;
  each_piece(g, peer, {0, g.layout.slices.ranks}, [&](Piece const& piece) {
    Transfer t = copy_of(g, piece);
    t.to = in_buffer(g, g.rank, piece), t.set = g.words.at(g.rank) + piece.word, t.awaited_from = peer;
    list.push_back(t);
  });
  return list;
}

Plan with_pieces(Plan plan, int64_t max_m, Nodes const& nodes) {
  if (nodes.count > 1 && plan.comm_rows == 0)
    plan.comm_rows = std::max<int64_t>((Shards{max_m, nodes.ranks, 1}.largest() + kRailPieces - 1) / kRailPieces, 1);
  return plan;
}

std::vector<Transfer> pushes_of_others(Gather const& g) {
  if (g.plan.path == Path::kRing) {  // the left neighbour's, from its buffer
    Gather left = g;
    left.rank = (g.rank + g.layout.shards.ranks - 1) % g.layout.shards.ranks;
    left.own = g.buffers.at(left.rank) + g.layout.shards.begin(left.rank) * g.row_bytes;
    left.own_stride = g.row_bytes;
    std::vector<Transfer> list = copies(left);
    for (Transfer& t : list) t.after = nullptr;
    return list;
  }
  // A pull makes the same transfers, only by another hand.
  Gather pull = g;
  pull.plan.path = Path::kDirect, pull.plan.transport = Transport::kPull, pull.readable = nullptr;
  return copies(pull);
}

}  // namespace flux
