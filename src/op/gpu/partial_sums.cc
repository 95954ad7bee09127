#include "op/gpu/partial_sums.h"

#include "kernel/gemm.h"
#include "op/checks.h"
#include "tile/node_schedule.h"

namespace flux {

GpuPartialSums::GpuPartialSums(Team& team, int64_t max_m, int64_t n, int64_t k, DType dtype, Plan const& plan, Way way,
                               std::shared_ptr<std::byte> scratch)
    : team_(team), n_(n), k_(k), dtype_(dtype), slot_dtype_(result_of(dtype)), plan_(plan), way_(way) {
  require(n % 8 == 0, "n is {}; on GPUs it is a multiple of 8", n);
  require(!plan.wide_slots, "slots=fp32 is not there on GPUs; use slots=dtype");
  require(way != Way::kSum || !team.gpu()->mirrored(), "route=sum has no mirror: a replay cannot add; use route=push");
  require(way != Way::kSum || chip_for(team.gpu()->chip(), dtype).engine == EngineKind::kSm90,
          "route=sum: the sm80 engine does not add at the owner; use route=push");
  require(way != Way::kSum || plan.store != StoreKind::kVector,
          "route=sum has no store=vector: vectors do not add; use store=tensor or store=bulk");
  // Refuses now what it would refuse in a call.
  blocks_to_copy(plan, Carried::kPartials, 0, way == Way::kRing, *team.gpu());
  int64_t const words = PartialSums::words(max_m, team.nodes(), plan, way);
  counts_ = team.gpu()->allocate(words * sizeof(Word));
  require(way != Way::kSum || !team.gpu()->through_host(),
          "route=sum adds at the owner, and ranks meet in host memory here; use route=stage");
  int64_t const bytes = scratch_bytes(team, max_m, n, dtype, plan, way);
  if (bytes > 0) staging_ = scratch ? std::move(scratch) : team.gpu()->allocate(bytes);
  behind_staging_ = staging_.get() + staging_bytes(max_m, n, dtype, way);
  if (staged()) {
    departed_ = team.gpu()->allocate(team.size() * words * sizeof(Word));
  }
  prepare_tiles(plan, dtype, *team.gpu());
  prepare_slot_sum();
}

int64_t GpuPartialSums::scratch_bytes(Team& team, int64_t max_m, int64_t n, DType dtype, Plan const& plan, Way way) {
  Nodes const& nodes = team.nodes();
  int64_t const slots = team.gpu()->through_host() ? PartialSums::data_bytes(max_m, n, dtype, nodes, plan, way) : 0;
  int64_t const sums = (nodes.count - 1) * Shards{max_m, nodes.ranks, 1}.largest() * n * size_of(result_of(dtype));
  return staging_bytes(max_m, n, dtype, way) + slots + sums;
}

// They wait for partial sums, so where others share the GPU they leave room as GEMMs do, and where blocks have still to
// carry partials, room for those: beside one block of sums a processor has room for a block that copies, and however
// unevenly as many blocks as processors are spread, half the processors have no more than one. Otherwise as many as
// hide each other's memory latency. Over nodes they leave the rails' multiprocessors alone, whose blocks are large.
int GpuPartialSums::sum_blocks(int beside) const {
  Gpu const& gpu = *team_.gpu();
  int const most = gemm_processors(plan_, gpu, gpu.spans_nodes() ? kRailBlocks : 0);
  return most > 0 ? most : (beside > 0 ? 1 : 4) * gpu.processors();
}

Tiles GpuPartialSums::tiles(int64_t m, WeightLayout layout) const {
  // All ranks take the same tile, whatever their own part of k: the words count its bands.
  int64_t const k = k_ > 0 ? (k_ + team_.size() - 1) / team_.size() : 4096;
  Gpu const& gpu = *team_.gpu();
  int64_t const at_once = this->at_once(m);
  int const copying = this->copying(m), beside = blocks_beside(copying, gpu);
  auto choose = [&](TiledRows rows, int beside) {
    return choose_tiles(plan_, rows, n_, k, layout, false, dtype_, gemm_chip(plan_, gpu, beside));
  };
  Tiles all = choose({m}, 0);
  if (way_ != Way::kStage || !gpu.across_pcie()) return plan_.fused && beside > 0 ? choose({m}, beside) : all;
  Tiles const pieces = choose(rows_to_tile(m, at_once, true), beside);
  double const first = cost(pieces.tile, std::max<int64_t>(at_once, tile_rows_together(1)), n_, depth_of(k, dtype_),
                            layout, gemm_chip(plan_, gpu, beside));
  bool const pay = pieces_pay(all.cycles - first, m, at_once, team_.size(), copying);
  if (plan_.route != RouteKind::kAuto || plan_.block_m > 0 || pay) return pieces;
  all.fused = false;
  return all;
}

int GpuPartialSums::copying(int64_t m) const {
  if (!staged()) return 0;
  return blocks_to_copy(plan_, Carried::kPartials, at_once(m) * n_ * size_of(slot_dtype_), way_ == Way::kRing,
                        *team_.gpu());
}

int64_t GpuPartialSums::at_once(int64_t m) const {
  return rows_at_once(plan_, Carried::kPartials, m, team_.size(), n_ * size_of(slot_dtype_),
                      team_.gpu()->across_pcie());
}

void GpuPartialSums::reserve(Tiles const& tiles, int64_t m, Tensor const& weight, WeightLayout layout) {
  GemmLaunch l;  // as many tiles as those of the call, in whatever order
  l.tile = tiles.tile, l.weight = weight, l.layout = layout;
  l.processors = gemm_processors(plan_, *team_.gpu(), blocks_beside(copying(m), *team_.gpu()));
  l.apart = !team_.gpu()->whole();
  l.order = arrange(Order::kNaive, Tiling::kAcross, {m, 1, 1}, tiles.tile.tile_m, tiles.tile.tiles_n(n_), 1, 0);
  recording_->reserve(l);
}

void GpuPartialSums::require_operands(Tensor const& x, Tensor const& weight, Tensor const& out,
                                      SumEpilogue const& epilogue) {
  require_on_gpu("x", x), require_on_gpu("the weight", weight), require_on_gpu("the output", out);
  require_on_gpu("the bias", epilogue.bias), require_on_gpu("the residual", epilogue.residual);
  require_on_gpu("the norm's weight", epilogue.norm_weight), require_on_gpu("the normed output", epilogue.normed);
  require_on_gpu(epilogue.scales);
}

// What both halves of a call go by. One after the other, without `fused_tiles`, an owner's rows go in one piece.
GpuPartialSums::Traffic GpuPartialSums::traffic(GpuChannel& channel, Call const& call, int64_t m,
                                                Tiles const* fused_tiles) const {
  Traffic t;
  t.way = way_, t.rank = team_.rank(), t.ranks = team_.size(), t.goal = call.digest;
  Plan now = plan_;
  int64_t const at_once = this->at_once(m);
  if (fused_tiles && plan_.comm_rows == 0 && at_once < Shards{m, t.ranks, 1}.largest())
    now.comm_rows = fused_tiles->rounded(at_once);
  int const whole = static_cast<int>(std::max<int64_t>(m, 1));
  t.bands = PartialSums::bands(m, t.ranks, fused_tiles ? fused_tiles->tile.tile_m : whole, way_, now);
  t.bands.tiling = Tiling::kAcross;  // blocks relay bands one by one, so a tile may hold two
  t.slot_rows = way_ == Way::kBroadcast ? m : t.bands.shards.largest();
  t.row_bytes = n_ * size_of(slot_dtype_);
  NodeSlots const places{team_.nodes(), t.rank};
  t.slots = places.by_owner(channel.data(call), t.slot_rows * t.row_bytes);
  t.words = places.by_owner(channel.words(call), t.bands.most()), t.staging = staging_.get();
  if (fused_tiles && staged()) t.departed = reinterpret_cast<Word*>(departed_.get());
  t.copying = copying(m), t.beside = blocks_beside(t.copying, *team_.gpu());
  if (channel.through_host()) t.slots.base[t.rank] = behind_staging_, t.words.base[t.rank] = channel.fetched();
  return t;
}

void GpuPartialSums::run(GpuChannel& channel, Call const& call, Tiles const& tiles, int64_t m, Tensor const& x,
                         Tensor const& weight, WeightLayout layout, Tensor const& out, SumEpilogue const& epilogue,
                         Stream stream) {
  if (m == 0 || n_ == 0) return;
  Nodes const& nodes = team_.nodes();
  int const rank = team_.rank(), ranks = team_.size(), position = nodes.position(rank);
  bool const fused = plan_.fused && tiles.fused;
  Traffic const t = traffic(channel, call, m, fused ? &tiles : nullptr);

  GemmLaunch l;
  l.tile = tiles.tile, l.processors = gemm_processors(plan_, *team_.gpu(), fused ? t.beside : 0),
  l.apart = !team_.gpu()->whole();
  l.a.base[rank] = x.data, l.a_stride = packed(x).stride;
  l.weight = weight, l.layout = layout, l.scales = epilogue.scales;
  for (int p = 0; p < ranks; ++p) l.c.base[p] = t.slots.at(p);
  l.c_stride = n_, l.store = plan_.store;
  Order const order = !fused || !plan_.in_order || way_ == Way::kBroadcast ? Order::kNaive
                      : way_ == Way::kRing                                 ? Order::kRelay
                                                                           : Order::kRotated;
  // Staged, an owner's tile rows are finished band by band. Low shards go side by side.
  int const tile_m = tiles.tile.tile_m, together = staged() ? tile_rows_together(tile_m) : tiles.band;
  int const tiles_n = tiles.tile.tiles_n(n_);
  int const band = staged() ? std::max(tiles.band_within(t.bands.height()), together) : tiles.band;
  if (channel.rail() && order != Order::kNaive)
    l.order =
        arrange(turns_of_sums(t.bands.shards, nodes.size(), t.bands.height(), rank), false, m, tile_m, tiles_n, band);
  else
    l.order = arrange(order, t.bands.tiling, t.bands.shards, tile_m, tiles_n, band, way_ == Way::kBroadcast ? 0 : rank,
                      together);
  l.gate = Open{rank, l.k()};
  Announcer announcer{t.bands, tiles.tile.announcements(n_), reinterpret_cast<Word*>(counts_.get()), t.words,
                      call.digest};
  switch (way_) {
    case Way::kPush: l.route = Push{position, t.slot_rows, announcer}; break;
    case Way::kSum: l.route = Sum{rank, announcer}; break;
    case Way::kBroadcast: l.route = Broadcast{rank, ranks, m, announcer}; break;
    case Way::kRing:
    case Way::kStage:
      l.c.base[position] = staging_.get();
      for (int p = 0; t.departed && p < ranks; ++p)
        if (nodes.gateway(rank, p) != rank || way_ == Way::kRing) announcer.words.base[p] = t.departed + p * t.each();
      if (fused)
        l.route = Stage{position, announcer};
      else
        l.route = Keep{position, m};
      break;
  }
  if (t.departed) channel.copies().fork(stream);
  if (channel.rail() && fused) channel.rail()->fork(stream);
  if (recording_) l.stamps = recording_->stamps(l);
  enqueue_gemm(l, stream);
  if (!fused) return scatter(channel, call, m, out, epilogue, stream);
  // Behind the kernel in every queue: with CUDA_DEVICE_MAX_CONNECTIONS=1 these waits block whatever comes after them.
  if (staged()) send_staged(channel, call, t, stream);
  if (channel.rail()) exchange_sums(channel, call, t);
  add_up(channel, call, t, out, epilogue, stream);
}

void GpuPartialSums::scatter(GpuChannel& channel, Call const& call, int64_t m, Tensor const& out,
                             SumEpilogue const& epilogue, Stream stream) {
  Traffic const t = traffic(channel, call, m, nullptr);
  channel.copies().fork(stream);
  if (channel.rail()) channel.rail()->fork(stream);
  send_staged(channel, call, t, stream);
  if (channel.rail()) exchange_sums(channel, call, t);
  add_up(channel, call, t, out, epilogue, stream);
}

void GpuPartialSums::send_staged(GpuChannel& channel, Call const& call, Traffic const& t, Stream stream) const {
  Nodes const& nodes = team_.nodes();
  std::vector<Transfer> ours = way_ == Way::kRing ? relays(t, t.rank)
                               : channel.rail()   ? copies_in_node(t, nodes)
                                                  : copies(t);
  for (Transfer& copy : ours) copy.clear_after = false;  // all at once, below: each stream write costs some 5 us
  if (t.copying > 0)
    channel.copy_by_blocks(ours, channel.mirrored() ? others(t) : std::vector<Transfer>{}, t.copying, slot_dtype_,
                           call.watch);
  else if (channel.mirrored())
    send_in_lock_step(channel, t, ours, others(t));
  else
    channel.copies().enqueue(ours);
  // Words of what meets here are set by the kernel, if it is the one that stores them.
  if (t.departed) return enqueue_words(t.departed, 0, t.ranks * t.each(), channel.copies().stream());
  for (int node = 0; node < nodes.count; ++node) {
    int const position = nodes.position(t.rank), owner = nodes.on_node(t.rank, node);
    for (int b = 0; b < t.bands.count(owner); ++b) {
      Transfer told;
      told.set = t.words.at(owner) + t.bands.index(position, b), told.goal = t.goal;
      enqueue(told, stream);
    }
  }
}

/// What `rank` passes on around the ring: a band's partials begin behind its owner, each rank adds its own to what came
/// from the left, and the owner adds the last.
std::vector<Transfer> GpuPartialSums::relays(Traffic const& d, int rank) {
  int const left = (rank + d.ranks - 1) % d.ranks, right = (rank + 1) % d.ranks;
  std::vector<Transfer> list;
  for (int i = 1; i < d.ranks; ++i) {
    int const owner = (rank - i + d.ranks) % d.ranks;
    for (int b = 0; b < d.bands.count(owner); ++b) {
      Place const band = d.bands.place(owner, b);
      Transfer t;
      t.after = d.departed + owner * d.each() + d.bands.index(rank, b), t.goal = d.goal;
      t.awaited = Awaited::kPartial, t.awaited_from = left, t.peer = right;
      t.row = d.bands.shards.begin(owner) + band.row, t.rows = band.rows;
      t.row_bytes = t.to_stride = t.from_stride = d.row_bytes;
      int64_t const at = t.row * d.row_bytes, word = d.bands.index(owner, b);
      t.from = d.staging + at, t.to = d.slots.at(right) + at, t.set = d.words.at(right) + word;
      if (i > 1) t.add = d.slots.at(rank) + at, t.add_after = d.words.at(rank) + word;
      list.push_back(t);
    }
  }
  return list;
}

// In a mirror: a peer at distance i stores its bands for us when we store ours for the rank at distance i, and its
// copies leave when ours do. Owners may have more bands than we have, or fewer: they go side by side as far as they
// get.
void GpuPartialSums::send_in_lock_step(GpuChannel& channel, Traffic const& t, std::span<Transfer const> ours,
                                       std::span<Transfer const> theirs) {
  if (!t.departed) {  // all at once
    channel.replay_after_waits();
    channel.copies().enqueue(ours);
    return channel.replay(theirs);
  }
  auto take = [](std::span<Transfer const>& list, auto&& enqueue) {
    enqueue(list.first(1), list.size() > 1), list = list.subspan(1);
  };
  auto comes = [&](std::span<Transfer const> one, bool more) { channel.replay(one, more); };
  int const each = t.bands.count(t.rank);  // of theirs, from every distance
  for (int i = 1; i < t.ranks; ++i) {
    int const mine = t.bands.count((t.rank + i) % t.ranks);
    int sent = 0;  // of theirs
    for (int b = 0; b < mine; ++b) {
      take(ours, [&](std::span<Transfer const> one, bool more) { channel.copies().enqueue(one, more); });
      channel.replay_after_waits();
      for (; sent < each && sent * mine < (b + 1) * each; ++sent) take(theirs, comes);
    }
    for (; sent < each; ++sent) take(theirs, comes);
  }
}

void GpuPartialSums::add_up(GpuChannel& channel, Call const& call, Traffic const& t, Tensor const& out,
                            SumEpilogue const& epilogue, Stream stream) const {
  // The partials that all get are few: blocks bring them at once, where copies would come one by one. They need room
  // beside the blocks that add up.
  bool const replayed_by_blocks = channel.mirrored() && way_ == Way::kBroadcast;
  if (replayed_by_blocks) {
    constexpr int kBlocksOfSource = 8;
    channel.copies().fork(stream);
    channel.copy_by_blocks({}, others(t), kBlocksOfSource * std::max(t.ranks - 1, 1), slot_dtype_, call.watch);
  } else if (channel.mirrored() && !staged()) {
    channel.replay(others(t));
  }
  if (channel.through_host()) channel.fetch(fetches(channel, call, t));
  SlotSum sum = node_sum(t, t.rank, call.watch);
  static_cast<SummedRows&>(sum) = summed(*team_.gpu(), out, epilogue);
  for (int node = 0; node < team_.nodes().count; ++node)  // behind the node's partials, the other nodes' sums
    if (int const peer = team_.nodes().on_node(t.rank, node); peer != t.rank)
      sum.whose[sum.sources++] = peer, ++sum.parts;
  if (way_ == Way::kBroadcast) sum.owner = 0;
  if (way_ == Way::kSum) sum.parts = 1;
  if (way_ == Way::kRing) {  // what came from the left, and ours
    sum.parts = std::min(t.ranks, 2), sum.own_part = sum.parts - 1, sum.sources = sum.parts - 1;
    sum.whose[0] = (t.rank + t.ranks - 1) % t.ranks;
    sum.slots = t.slots.at(t.rank) + t.bands.shards.begin(t.rank) * t.row_bytes,
    sum.words = t.words.at(t.rank) + t.bands.index(t.rank, 0);
  }
  if (recording_) recording_->begin_part(SpanKind::kSum, stream);
  sum_slots(sum, sum_blocks(replayed_by_blocks ? 1 : t.beside), stream);
  if (recording_) recording_->end_part(stream);
  if (way_ == Way::kSum)  // the next call adds to zeros again
    enqueue_zeros(t.slots.at(t.rank), t.bands.shards.size(t.rank) * t.row_bytes, stream);
  if (staged() || replayed_by_blocks) channel.copies().join(stream);
  if (channel.rail()) channel.rail()->join(stream);
}

/// In a mirror: the partials of the others, read from their own slots, in the order of ours. Where tiles are stored at
/// their owners, or blocks carry them, a peer's tiles for us are finished with ours at the same distance: its bands
/// come when those have gone, or can go.
std::vector<Transfer> GpuPartialSums::others(Traffic const& d) const {
  std::vector<Transfer> list;
  if (way_ == Way::kRing) {  // the left neighbour's relays
    int const left = (d.rank + d.ranks - 1) % d.ranks;
    for (Transfer t : relays(d, left)) {
      t.from = d.slots.at(left) + t.row * d.row_bytes, t.add = nullptr, t.add_after = nullptr;
      int const hop = (left - d.bands.shards.owner(t.row) + d.ranks) % d.ranks,
                ours = (d.rank - hop + d.ranks) % d.ranks;
      t.after = d.bands.count(ours) > 0 ? d.departed + ours * d.each() + d.bands.index(d.rank, 0) : nullptr;
      list.push_back(t);
    }
    return list;
  }
  int const owner = d.way == Way::kBroadcast ? 0 : d.rank;
  for (int i = 1; i < d.ranks; ++i) {
    int const source = (d.rank - i + d.ranks) % d.ranks, to = (d.rank + i) % d.ranks;
    int const theirs = d.bands.count(d.way == Way::kBroadcast ? 0 : to);
    for (int b = 0; b < d.bands.count(owner); ++b) {
      Place const band = d.bands.place(owner, b);
      Transfer t;
      if (d.way != Way::kStage && b < theirs)
        t.after = d.words.at(to) + d.bands.index(d.rank, b), t.clear_after = to != d.rank;
      else if (d.copying > 0 && d.departed && b < theirs)
        t.after = d.departed + to * d.each() + d.bands.index(d.rank, b);
      t.goal = d.goal;
      int64_t const at = (source * d.slot_rows + band.row) * d.row_bytes;
      t.from = d.slots.at(source) + at, t.to = d.slots.at(d.rank) + at;
      t.rows = band.rows, t.row_bytes = t.to_stride = t.from_stride = d.row_bytes;
      t.set = d.words.at(d.rank) + d.bands.index(source, b);
      list.push_back(t);
    }
  }
  return list;
}

std::vector<Transfer> GpuPartialSums::fetches(GpuChannel& channel, Call const& call, Traffic const& d) {
  std::vector<Transfer> list;
  std::byte const* const sent = channel.data(call).at(d.rank);
  Word* const told = channel.words(call).at(d.rank);
  int const owner = d.way == Way::kBroadcast ? 0 : d.rank;
  for (int i = 1; i < d.ranks; ++i) {
    int const source = (d.rank - i + d.ranks) % d.ranks;
    for (int b = 0; b < d.bands.count(owner); ++b) {
      Place const band = d.bands.place(owner, b);
      Transfer t;
      int64_t const at = (source * d.slot_rows + band.row) * d.row_bytes, word = d.bands.index(source, b);
      t.after = told + word, t.goal = d.goal, t.awaited = Awaited::kPartial, t.awaited_from = source;
      t.from = sent + at, t.to = d.slots.at(d.rank) + at;
      t.row = d.bands.shards.begin(owner) + band.row, t.rows = band.rows;
      t.row_bytes = t.to_stride = t.from_stride = d.row_bytes;
      t.set = d.words.at(d.rank) + word;
      list.push_back(t);
    }
  }
  return list;
}

SummedRows GpuPartialSums::summed(Gpu const& gpu, Tensor const& out, SumEpilogue const& epilogue) {
  SummedRows sum;
  sum.alone = !gpu.shared() && !gpu.spans_nodes();
  sum.out = packed(out), sum.bias = epilogue.bias, sum.residual = packed(epilogue.residual);
  sum.norm_weight = epilogue.norm_weight, sum.normed = packed(epilogue.normed);
  sum.norm_epsilon = static_cast<float>(epilogue.norm_epsilon);
  return sum;
}

void GpuPartialSums::finish_rows(Call const& call, Tensor const& rows, Tensor const& out, SumEpilogue const& epilogue,
                                 Stream stream) const {
  SlotSum sum{summed(*team_.gpu(), out, epilogue)};
  sum.watch = call.watch;
  sum.bands = {{rows.rows, 1, 1}, static_cast<int>(std::max<int64_t>(rows.rows, 1))};
  sum.slots = rows.data, sum.slot_rows = rows.rows;
  sum_slots(sum, sum_blocks(0), stream);
}

}  // namespace flux
