#include "op/partial_sums.h"

#include <algorithm>
#include <cstring>

#include "engine/host/sum.h"
#include "tile/node_schedule.h"

namespace flux {

PartialSums::Way PartialSums::way_of(Plan const& plan) {
  if (!plan.fused) return Way::kStage;  // stored here while the GEMM runs, sent behind it
  switch (plan.route) {
    case RouteKind::kAuto:
    case RouteKind::kPackets:
    case RouteKind::kPush: return Way::kPush;
    case RouteKind::kStage: return Way::kStage;
    case RouteKind::kSum: return Way::kSum;
    case RouteKind::kRing: return Way::kRing;
  }
  return Way::kPush;
}

// One-shot sums everywhere. Two-shot sums at the owner; unfused it is the plain reduce-scatter and all-gather.
PartialSums::Way PartialSums::way_of_all(Plan const& plan) {
  return plan.shots == Shots::kOneShot && plan.fused ? Way::kBroadcast : way_of(plan);
}

BandWords PartialSums::bands(int64_t m, int ranks, int block_m, Way way, Plan const& plan) {
  BandWords bands{{m, way == Way::kBroadcast ? 1 : ranks, 1}, block_m};
  if (way == Way::kRing) bands.tiling = Tiling::kWithin;
  if (way == Way::kStage && plan.fused) {
    int64_t const shard = bands.shards.largest() / block_m + 2;  // tile rows, with those of both neighbours
    bands.tall =
        static_cast<int>(plan.comm_rows == 0 ? shard : std::clamp<int64_t>(plan.comm_rows / block_m, 1, shard));
  }
  return bands;
}

int64_t PartialSums::words(int64_t max_m, Nodes const& nodes, Plan const& plan, Way way) {
  constexpr int kLeastTile = 64;  // of those that engines choose
  Plan smallest = plan;           // communication tiles: no other plan or tile has more bands
  smallest.comm_rows = 1;
  int const tiled = bands(max_m, nodes.ranks, plan.block_m > 0 ? plan.block_m : kLeastTile, way, smallest).most();
  int const whole =
      bands(1, nodes.ranks, 1, way, smallest).most();  // where an owner's rows go in one piece, whatever m is
  return int64_t{1} * NodeSlots::count(nodes) * std::max(tiled, whole);
}

int64_t PartialSums::data_bytes(int64_t max_m, int64_t n, DType dtype, Nodes const& nodes, Plan const& plan, Way way) {
  int64_t const row = n * size_of(slot_dtype(dtype, plan));
  int64_t const largest = Shards{max_m, nodes.ranks, 1}.largest();
  switch (way) {
    case Way::kPush:
    case Way::kStage: return NodeSlots::count(nodes) * largest * row;
    case Way::kSum: return largest * row;
    case Way::kRing: return max_m * row;
    case Way::kBroadcast: return nodes.ranks * max_m * row;
  }
  return 0;
}

MemoryNeed PartialSums::memory(int64_t max_m, int64_t n, DType dtype, Nodes const& nodes, Plan const& plan, Way way,
                               int64_t more_words, int64_t more_bytes) {
  int64_t const count = words(max_m, nodes, plan, way), row = n * size_of(slot_dtype(dtype, plan));
  int64_t const own = (1 + nodes.ranks) * count * int64_t{sizeof(Word)} + (way == Way::kStage ? max_m * row : row) +
                      (nodes.count > 1 ? nodes.count * Shards{max_m, nodes.ranks, 1}.largest() * row : 0);
  return memory_need(count + more_words, data_bytes(max_m, n, dtype, nodes, plan, way) + more_bytes, plan, {}, own);
}

PartialSums::PartialSums(Team& team, int64_t max_m, int64_t n, DType dtype, Plan const& plan, Way way)
    : team_(team),
      n_(n),
      slot_dtype_(slot_dtype(dtype, plan)),
      plan_(plan),
      way_(way),
      workers_(plan.workers),
      counts_(PartialSums::words(max_m, team.nodes(), plan, way)),
      departed_(team.size() * PartialSums::words(max_m, team.nodes(), plan, way)),
      staging_(way == Way::kStage ? max_m * n * size_of(slot_dtype_) : 0),
      zeros_(way == Way::kSum ? n * size_of(slot_dtype_) : 0),
      node_sums_(
          team.nodes().count > 1 ? PartialSums::words(max_m, team.nodes(), plan, way) : 0,
          team.nodes().count > 1 ? team.nodes().count * Shards{max_m, team.size(), 1}.largest() * row_bytes() : 0) {}

// The words that tiles set. Where something still has to carry them (a copy, a declared link) they are ours, one set
// for each destination, and the copy engine sets the destination's own.
Announcer PartialSums::announcer(HostChannel& channel, Call const& call, bool departs) {
  Announcer out;
  out.bands = bands_, out.tiles_n = static_cast<int>((n_ + plan_.block_n - 1) / plan_.block_n);
  out.counts = counts_.data(), out.words = words(channel, call), out.goal = call.digest;
  int64_t const each = int64_t{1} * team_.size() * bands_.most();
  for (int p = 0; departs && p < team_.size(); ++p)
    if (team_.nodes().gateway(team_.rank(), p) != team_.rank()) out.words.base[p] = departed_.data() + p * each;
  return out;
}

Tensor PartialSums::slot(HostChannel& channel, Call const& call, int owner, int source) const {
  int const rank = team_.rank();
  int64_t const begin = bands_.shards.begin(owner) * row_bytes();
  std::byte* const mine = channel.data(call).at(rank);
  std::byte* at = (way_ == Way::kBroadcast ? mine : slots(channel, call).at(owner)) + source * slot_rows_ * row_bytes();
  if (way_ == Way::kStage && source == team_.nodes().position(rank))
    at = const_cast<std::byte*>(staging_.data()) + begin;
  if (way_ == Way::kSum) at = mine;
  if (way_ == Way::kRing) at = mine + begin;
  return matrix(at, slot_dtype_, bands_.shards.size(owner), n_);
}

Tensor PartialSums::rail_slot(HostChannel& channel, Call const& call, int node) const {
  std::byte* const at = channel.data(call).at(team_.rank()) + places().of_node(node) * slot_rows_ * row_bytes();
  return matrix(at, slot_dtype_, bands_.shards.size(team_.rank()), n_);
}

Word* PartialSums::rail_words(HostChannel& channel, Call const& call, int node) const {
  return channel.words(call).at(team_.rank()) + bands_.index(places().of_node(node), 0);
}

namespace {

Transfer departure(Departures const& d, int to, int source, Place band) {
  Transfer t = rows_of(d.bands, band, d.row_bytes, d.goal);
  int64_t const word = d.bands.index(source, d.bands.index(band));
  if (d.departed) t.after = d.departed + to * d.each() + word, t.clear_after = true;
  t.awaited = Awaited::kPartial, t.awaited_from = d.rank, t.peer = to;
  t.set = d.words.at(to) + word;
  if (d.way == PartialSums::Way::kStage) {
    t.from = d.staging + t.row * d.row_bytes;
    t.to = d.slots.at(to) + (source * d.slot_rows + band.row) * d.row_bytes;
  }
  return t;
}

}  // namespace

std::vector<Transfer> copies(Departures const& d) {
  using Way = PartialSums::Way;
  std::vector<Transfer> list;
  auto depart = [&](int to, int source, Place band) { list.push_back(departure(d, to, source, band)); };
  if (d.way == Way::kBroadcast) {
    for (int b = 0; b < d.bands.count(0); ++b)
      for (int i = 1; i < d.ranks; ++i) depart((d.rank + i) % d.ranks, d.rank, d.bands.place(0, b));
    return list;
  }
  for (int i = 1; i < d.ranks; ++i) {
    int const owner = d.way == Way::kRing ? (d.rank - i + d.ranks) % d.ranks : (d.rank + i) % d.ranks;
    for (int b = 0; b < d.bands.count(owner); ++b) {
      Place const band = d.bands.place(owner, b);
      if (d.way == Way::kRing)
        depart((d.rank + 1) % d.ranks, owner, band);
      else
        depart(owner, d.rank, band);
    }
  }
  return list;
}

// Bands of the other nodes' rows take turns, as the tiles do; what meets here needs no copy.
std::vector<Transfer> copies_in_node(Departures const& d, Nodes const& nodes) {
  std::vector<Transfer> list;
  int const node = nodes.node(d.rank), position = nodes.position(d.rank);
  auto add = [&](int owner, int band) {
    if (band >= d.bands.count(owner)) return;
    list.push_back(departure(d, owner, position, d.bands.place(owner, band)));
    list.back().peer = nodes.gateway(d.rank, owner);
  };
  auto owner = [&](int distance, int i) {
    return nodes.rank((node + distance) % nodes.count, (position + i) % nodes.size());
  };
  for (int distance = 1; distance <= nodes.count; ++distance)
    for (int band = 0; band < d.bands.most(); ++band)
      for (int i = 1; i < nodes.size(); ++i) add(owner(distance, i), band);
  return list;
}

// Those of our rows that other nodes sum come along the rails; theirs that meet here are summed and go.
void PartialSums::exchange_sums(HostChannel& channel, Call const& call, Recording& recording) {
  Nodes const& nodes = team_.nodes();
  int const rank = team_.rank();
  for (int peer : nodes.rail(rank)) {
    Tensor const to = rail_slot(channel, call, nodes.node(peer));
    std::vector<Transfer> coming;
    for (int b = 0; b < bands_.count(rank); ++b) {
      Place const band = bands_.place(rank, b);
      Transfer t = rows_of(bands_, band, row_bytes(), call.digest);
      t.to = static_cast<std::byte*>(to.row(band.row)), t.set = rail_words(channel, call, nodes.node(peer)) + b;
      t.awaited = Awaited::kPartial, t.awaited_from = t.peer = peer;
      coming.push_back(t);
    }
    channel.rail()->receive(peer, std::move(coming), call.watch);
  }
  node_sums_.begin(channel, call, bands_, row_bytes(), recording, [this, &channel, call](Place band, std::byte* to) {
    std::vector<Tensor> parts;
    Word const* const here = words(channel, call).at(band.rank);
    int const first = team_.neighbours().front();
    for (int s = 0; s < team_.nodes().size(); ++s) {
      int64_t const row = bands_.shards.begin(band.rank) + band.row;
      Word const* const word = here + bands_.index(s, bands_.index(band));
      if (!await(word, call.digest, call.watch, Awaited::kPartial, first + s, row)) return false;
      parts.push_back(slot(channel, call, band.rank, s));
    }
    std::byte* const origin = to - band.row * row_bytes();
    host::sum_rows(parts, band.row, band.rows, matrix(origin, slot_dtype_, bands_.shards.size(band.rank), n_), {});
    return true;
  });
}

Schedule PartialSums::schedule(int tiles_n) const {
  Shards const& shards = bands_.shards;
  int const rank = way_ == Way::kBroadcast ? 0 : team_.rank(), of_node = team_.nodes().size();
  if (team_.nodes().count > 1 && plan_.in_order)
    return arrange(turns_of_sums(shards, of_node, bands_.height(), rank), false, shards.total, plan_.block_m, tiles_n,
                   plan_.band);
  Order const order = !plan_.in_order || way_ == Way::kBroadcast ? Order::kNaive
                      : way_ == Way::kRing                       ? Order::kRelay
                                                                 : Order::kRotated;
  return arrange(order, bands_.tiling, shards, plan_.block_m, tiles_n, plan_.band, rank);
}

void PartialSums::multiply(HostChannel& channel, Call const& call, int64_t m, Tensor const& x, Tensor const& weight,
                           WeightLayout layout, Scales const& scales, Recording& recording) {
  int const rank = team_.rank(), ranks = team_.size(), position = team_.nodes().position(rank);
  bands_ = bands(m, ranks, plan_.block_m, way_, plan_);
  slot_rows_ = way_ == Way::kBroadcast ? m : bands_.shards.largest();
  if (m == 0 || n_ == 0) return;
  Link const link = team_.options().link;
  bool const departs = way_ == Way::kStage || link.gbps > 0;
  auto send = [&] {
    if (!departs) return;
    Departures const d{way_,
                       rank,
                       ranks,
                       bands_,
                       slot_rows_,
                       row_bytes(),
                       call.digest,
                       slots(channel, call),
                       staging_.data(),
                       departed_.data(),
                       words(channel, call)};
    bool const several = team_.nodes().count > 1;
    channel.copies().enqueue(several ? copies_in_node(d, team_.nodes()) : copies(d), link, call.watch,
                             recording.copies());
  };
  if (channel.rail()) exchange_sums(channel, call, recording);
  if (plan_.fused) send();

  host::Launch launch;
  launch.a.base[rank] = static_cast<std::byte*>(x.data), launch.a_stride = x.stride;
  launch.weight = weight, launch.layout = layout, launch.scales = scales;
  launch.c = slots(channel, call), launch.c_dtype = slot_dtype_, launch.c_stride = n_, launch.columns = n_;
  launch.block_m = plan_.block_m, launch.block_n = plan_.block_n;
  launch.inbox = channel.data(call).at(rank);
  Schedule const schedule = this->schedule(launch.tiles_n());
  Open const open{rank, layout == WeightLayout::kOutIn ? weight.columns : weight.rows};
  Announcer const out = announcer(channel, call, departs);
  auto launch_with = [&](auto const& route) {
    host::run_tiles(workers_, launch, schedule, open, route, recording.stamps());
  };
  switch (way_) {
    case Way::kPush: launch_with(Push{position, slot_rows_, out}); break;
    case Way::kStage:
      launch.c.base[position] = staging_.data();
      launch_with(Stage{position, out});
      break;
    case Way::kSum: launch_with(Sum{rank, out}); break;
    case Way::kRing: launch_with(Ring{rank, out, channel.words(call).at(rank), call.watch}); break;
    case Way::kBroadcast: launch_with(Broadcast{rank, ranks, m, out}); break;
  }
  if (!plan_.fused) send();
}

void PartialSums::sum(HostChannel& channel, Call const& call, Recording& recording,
                      std::function<void(int, std::span<Tensor const>, Place)> const& take) {
  Nodes const& nodes = team_.nodes();
  int const rank = team_.rank(), owner = way_ == Way::kBroadcast ? 0 : rank, first = team_.neighbours().front();
  Word const* const here = way_ == Way::kBroadcast ? channel.words(call).at(rank) : words(channel, call).at(rank);
  struct Source {  // whose word of a band to wait for: everybody's, or the relay's last
    Word const* words;
    int rank;
  };
  std::vector<Source> sources;
  std::vector<Tensor> slots;
  for (int s = 0; s < nodes.size(); ++s) {
    if (way_ != Way::kRing || s == (rank + nodes.size() - 1) % nodes.size())
      sources.push_back({here + bands_.index(s, 0), first + s});
    bool const whole = way_ == Way::kSum || way_ == Way::kRing;  // the sum itself lies here
    if (!whole || s == rank) slots.push_back(slot(channel, call, owner, s));
  }
  for (int node = 0; node < nodes.count; ++node) {
    if (node == nodes.node(rank)) continue;
    sources.push_back({rail_words(channel, call, node), nodes.on_node(rank, node)});
    slots.push_back(rail_slot(channel, call, node));
  }
  int const count = n_ == 0 ? 0 : bands_.count(owner);
  workers_.run([&](int worker) {
    for (int b = worker; b < count; b += workers_.count()) {
      Place const band = bands_.place(owner, b);
      int64_t const row = bands_.shards.begin(owner) + band.row;
      int64_t begin = now_ns();
      for (Source const& s : sources)
        if (!await(s.words + b, call.digest, call.watch, Awaited::kPartial, s.rank, row)) return;
      recording.add(worker, SpanKind::kWait, begin, row, band.rows);
      begin = now_ns();
      take(worker, slots, band);
      if (way_ == Way::kSum)  // the next call adds to zeros again
        for (int64_t i = 0; i < band.rows; ++i) std::memcpy(slots[0].row(band.row + i), zeros_.data(), zeros_.size());
      recording.add(worker, SpanKind::kSum, begin, row, band.rows);
    }
  });
  team_.check();
}

}  // namespace flux
