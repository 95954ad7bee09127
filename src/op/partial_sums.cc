#include "op/partial_sums.h"

#include <algorithm>
#include <cstring>

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

int64_t PartialSums::words(int64_t max_m, int ranks, Plan const& plan, Way way) {
  constexpr int kLeastTile = 64;  // of those that engines choose
  Plan smallest = plan;           // communication tiles: no other plan or tile has more bands
  smallest.comm_rows = 1;
  int const tiled = bands(max_m, ranks, plan.block_m > 0 ? plan.block_m : kLeastTile, way, smallest).most();
  int const whole = bands(1, ranks, 1, way, smallest).most();  // where an owner's rows go in one piece, whatever m is
  return int64_t{1} * ranks * std::max(tiled, whole);
}

int64_t PartialSums::data_bytes(int64_t max_m, int64_t n, DType dtype, int ranks, Plan const& plan, Way way) {
  int64_t const row = n * size_of(slot_dtype(dtype, plan));
  int64_t const largest = Shards{max_m, ranks, 1}.largest();
  switch (way) {
    case Way::kPush:
    case Way::kStage: return ranks * largest * row;
    case Way::kSum: return largest * row;
    case Way::kRing: return max_m * row;
    case Way::kBroadcast: return ranks * max_m * row;
  }
  return 0;
}

MemoryNeed PartialSums::memory(int64_t max_m, int64_t n, DType dtype, int ranks, Plan const& plan, Way way,
                               int64_t more_words, int64_t more_bytes) {
  int64_t const count = words(max_m, ranks, plan, way), row = n * size_of(slot_dtype(dtype, plan));
  int64_t const own = (1 + ranks) * count * int64_t{sizeof(Word)} + (way == Way::kStage ? max_m * row : row);
  return memory_need(count + more_words, data_bytes(max_m, n, dtype, ranks, plan, way) + more_bytes, plan, {}, own);
}

PartialSums::PartialSums(Team& team, int64_t max_m, int64_t n, DType dtype, Plan const& plan, Way way)
    : team_(team),
      n_(n),
      slot_dtype_(slot_dtype(dtype, plan)),
      plan_(plan),
      way_(way),
      workers_(plan.workers),
      counts_(words(max_m, team.size(), plan, way)),
      departed_(team.size() * words(max_m, team.size(), plan, way)),
      staging_(way == Way::kStage ? max_m * n * size_of(slot_dtype_) : 0),
      zeros_(way == Way::kSum ? n * size_of(slot_dtype_) : 0) {}

// The words that tiles set. Where something still has to carry them (a copy, a declared link) they are ours, one set
// for each destination, and the copy engine sets the destination's own.
Announcer PartialSums::announcer(HostChannel& channel, Call const& call, bool departs) {
  Announcer out;
  out.bands = bands_, out.tiles_n = static_cast<int>((n_ + plan_.block_n - 1) / plan_.block_n);
  out.counts = counts_.data(), out.words = channel.words(call), out.goal = call.digest;
  int64_t const each = int64_t{1} * team_.size() * bands_.most();
  for (int p = 0; departs && p < team_.size(); ++p)
    if (p != team_.rank()) out.words.base[p] = departed_.data() + p * each;
  return out;
}

Tensor PartialSums::slot(HostChannel& channel, Call const& call, int source) const {
  int const rank = team_.rank();
  std::byte* const data = channel.data(call).at(rank);
  int64_t const row_bytes = n_ * size_of(slot_dtype_), own = bands_.shards.size(way_ == Way::kBroadcast ? 0 : rank);
  std::byte* at = data + source * slot_rows_ * row_bytes;
  if (way_ == Way::kStage && source == rank)
    at = const_cast<std::byte*>(staging_.data()) + bands_.shards.begin(rank) * row_bytes;
  if (way_ == Way::kSum) at = data;
  if (way_ == Way::kRing) at = data + bands_.shards.begin(rank) * row_bytes;
  return matrix(at, slot_dtype_, own, n_);
}

std::vector<Transfer> copies(Departures const& d) {
  using Way = PartialSums::Way;
  std::vector<Transfer> list;
  auto depart = [&](int to, int source, Place band) {
    Transfer t;
    int64_t const word = d.bands.index(source, d.bands.index(band));
    if (d.departed) t.after = d.departed + to * d.each() + word, t.clear_after = true;
    t.goal = d.goal, t.awaited = Awaited::kPartial, t.awaited_from = d.rank, t.peer = to;
    t.row = d.bands.shards.begin(band.rank) + band.row, t.rows = band.rows;
    t.row_bytes = t.to_stride = t.from_stride = d.row_bytes;
    t.set = d.words.at(to) + word;
    if (d.way == Way::kStage) {
      t.from = d.staging + t.row * d.row_bytes;
      t.to = d.slots.at(to) + (d.rank * d.slot_rows + band.row) * d.row_bytes;
    }
    list.push_back(t);
  };
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

void PartialSums::multiply(HostChannel& channel, Call const& call, int64_t m, Tensor const& x, Tensor const& weight,
                           WeightLayout layout, Scales const& scales, Recording& recording) {
  int const rank = team_.rank(), ranks = team_.size();
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
                       n_ * size_of(slot_dtype_),
                       call.digest,
                       channel.data(call),
                       staging_.data(),
                       departed_.data(),
                       channel.words(call)};
    channel.copies().enqueue(copies(d), link, call.watch, recording.copies());
  };
  if (plan_.fused) send();

  host::Launch launch;
  launch.a.base[rank] = static_cast<std::byte*>(x.data), launch.a_stride = x.stride;
  launch.weight = weight, launch.layout = layout, launch.scales = scales;
  launch.c = channel.data(call), launch.c_dtype = slot_dtype_, launch.c_stride = n_, launch.columns = n_;
  launch.block_m = plan_.block_m, launch.block_n = plan_.block_n;
  launch.inbox = channel.data(call).at(rank);
  Order const order = !plan_.in_order || way_ == Way::kBroadcast ? Order::kNaive
                      : way_ == Way::kRing                       ? Order::kRelay
                                                                 : Order::kRotated;
  Schedule const schedule = arrange(order, bands_.tiling, bands_.shards, plan_.block_m, launch.tiles_n(), plan_.band,
                                    way_ == Way::kBroadcast ? 0 : rank);
  Open const open{rank, layout == WeightLayout::kOutIn ? weight.columns : weight.rows};
  Announcer const out = announcer(channel, call, departs);
  auto launch_with = [&](auto const& route) {
    host::run_tiles(workers_, launch, schedule, open, route, recording.stamps());
  };
  switch (way_) {
    case Way::kPush: launch_with(Push{rank, slot_rows_, out}); break;
    case Way::kStage:
      launch.c.base[rank] = staging_.data();
      launch_with(Stage{rank, out});
      break;
    case Way::kSum: launch_with(Sum{rank, out}); break;
    case Way::kRing: launch_with(Ring{rank, out, channel.words(call).at(rank), call.watch}); break;
    case Way::kBroadcast: launch_with(Broadcast{rank, ranks, m, out}); break;
  }
  if (!plan_.fused) send();
}

void PartialSums::sum(HostChannel& channel, Call const& call, Recording& recording,
                      std::function<void(int, std::span<Tensor const>, Place)> const& take) {
  int const rank = team_.rank(), ranks = team_.size(), owner = way_ == Way::kBroadcast ? 0 : rank;
  Word const* const words = channel.words(call).at(rank);
  std::vector<int> sources;  // whose words to wait for: everybody's, or the relay's last
  for (int s = 0; s < ranks; ++s)
    if (way_ != Way::kRing || s == (rank + ranks - 1) % ranks) sources.push_back(s);
  std::vector<Tensor> slots;
  if (way_ == Way::kSum || way_ == Way::kRing) {
    slots.push_back(slot(channel, call, rank));
  } else {
    for (int s = 0; s < ranks; ++s) slots.push_back(slot(channel, call, s));
  }
  int const count = n_ == 0 ? 0 : bands_.count(owner);
  workers_.run([&](int worker) {
    for (int b = worker; b < count; b += workers_.count()) {
      Place const band = bands_.place(owner, b);
      int64_t const first = bands_.shards.begin(owner) + band.row;
      int64_t begin = now_ns();
      for (int s : sources)
        if (!await(words + bands_.index(s, b), call.digest, call.watch, Awaited::kPartial, s, first)) return;
      recording.add(worker, SpanKind::kWait, begin, first, band.rows);
      begin = now_ns();
      take(worker, slots, band);
      if (way_ == Way::kSum)  // the next call adds to zeros again
        for (int64_t i = 0; i < band.rows; ++i) std::memcpy(slots[0].row(band.row + i), zeros_.data(), zeros_.size());
      recording.add(worker, SpanKind::kSum, begin, first, band.rows);
    }
  });
  team_.check();
}

}  // namespace flux
