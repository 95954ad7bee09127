#include "plan/resolve.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/sm90/config.h"
#include "flux/error.h"
#include "tile/node_schedule.h"
#include "tile/packet.h"

namespace flux {
namespace {

template <class... Args>
void refuse_if(bool bad, fmt::format_string<Args...> format, Args&&... args) {
  if (bad) throw Error(ErrorKind::kUnsupported, fmt::format(format, std::forward<Args>(args)...));
}

bool across_pcie(Machine const& machine) { return across_pcie(machine.link.kind); }
bool through_host(Machine const& machine) { return machine.link.kind == LinkKind::kHost; }

int64_t rows_at_once(Plan const& plan, Problem const& problem, Machine const& machine) {
  return rows_at_once(plan, problem.gathers() ? Carried::kRows : Carried::kPartials, problem.m, problem.ranks,
                      problem.row_bytes(), across_pcie(machine));
}

TileRow shape_of(Plan const& plan, Problem const& p, TiledRows rows, Machine const& machine) {
  bool const host = machine.engine == EngineKind::kHost;  // its operators take 256 x 512, or any
  if (host) {
    bool const open = plan.block_m == 0;
    return {EngineKind::kHost, -1, open ? 256 : plan.block_m, open ? 512 : plan.block_n};
  }
  if (plan.block_m == 0) return usual_shape(rows, p.local_n(), depth(p, machine), p.layout, p.gated, machine);
  auto const named =
      named_shape(plan.block_m, plan.block_n, rows, p.local_n(), depth(p, machine), p.layout, p.gated, machine);
  if (named) return *named;
  std::string known;
  for (TileRow const& shape : tile_shapes(machine, p.layout, p.gated))
    known += fmt::format(" {}x{}", shape.tile_m, shape.tile_n);
  throw Error(ErrorKind::kUnsupported, fmt::format("tile={}x{} is none of the {} engine's: auto{}", plan.block_m,
                                                   plan.block_n, name(machine.engine), known));
}

int64_t rounded(int64_t rows, int tile_m) { return (rows + tile_m - 1) / tile_m * tile_m; }

PacketShots shots_of(Plan const& plan, Problem const& problem, Machine const& machine) {
  if (machine.engine == EngineKind::kHost || through_host(machine) || problem.nodes > 1) return PacketShots::kNone;
  Reach const reach = across_pcie(machine) ? Reach::kPcie : Reach::kNvlink;
  return packet_shots(plan, problem.op, problem.m, problem.row_bytes(), problem.ranks, reach);
}

Way way_of(Plan const& plan, Problem const& problem, Machine const& machine) {
  if (problem.gathers()) return Way::kNone;
  if (shots_of(plan, problem, machine) != PacketShots::kNone) return Way::kPackets;
  if (!plan.fused) return Way::kStage;
  if (problem.op == Op::kGemmAllReduce && plan.shots == Shots::kOneShot) return Way::kBroadcast;
  switch (plan.route) {
    case RouteKind::kAuto:
    case RouteKind::kPackets: return across_pcie(machine) ? Way::kStage : Way::kPush;
    case RouteKind::kPush: return Way::kPush;
    case RouteKind::kStage: return Way::kStage;
    case RouteKind::kSum: return Way::kSum;
    case RouteKind::kRing: break;
  }
  refuse_if(machine.engine == EngineKind::kHost,
            "route=ring of the host engine relays tile by tile, which is not simulated");
  return Way::kRing;
}

int blocks_to_copy(Plan const& plan, Carried what, int64_t piece_bytes, bool around, Machine const& machine) {
  if (machine.engine == EngineKind::kHost) return 0;
  if (through_host(machine)) {
    refuse_if(around, "ranks meet in host memory, where a ring has no use; use path=direct and route=auto");
    refuse_if(plan.copy_blocks > 0, "copies={}: copy engines carry what goes through host memory; use copies=auto",
              plan.copy_blocks);
    return 0;
  }
  refuse_if(around && plan.copy_blocks == 0, "around a ring blocks of the GPU relay; use copies=auto or a number");
  return blocks_to_copy(plan, what, piece_bytes, around);
}

void leave_room(Resolved& r, int copying, Machine const& machine) {
  r.copying = copying;
  bool const rails = r.problem.nodes > 1 && machine.engine != EngineKind::kHost;
  // In a mirror those of the ranks that are left out too; through host memory the waits of the copies.
  int const blocks = (through_host(machine) ? 1 : copying * (machine.mirror ? 2 : 1)) + (rails ? kRailBlocks : 0);
  int const free = std::max(r.plan.spare, r.fused ? blocks : 0);
  r.processors = free == 0 ? machine.processors : std::max((machine.processors - free) / 2 * 2, 2);
}
/// The machine as the GEMM sees it.
Machine beside_copies(Resolved const& r, Machine machine) {
  machine.processors = r.processors;
  return machine;
}

// What no operator does over several nodes.
void require_pushes(Problem const& p, Plan const& plan) {
  if (p.nodes == 1) return;
  refuse_if(plan.transport != Transport::kPush || plan.path != Path::kDirect,
            "between nodes rows are pushed: transport=push path=direct");
  refuse_if(plan.route == RouteKind::kSum || plan.route == RouteKind::kRing,
            "each node sums before it sends: route=push or route=stage");
  refuse_if(plan.fused && plan.shots == Shots::kOneShot, "shots=one sends every partial to every rank: shots=two");
}

void resolve_gather(Resolved& r, Plan const& plan, Machine const& machine) {
  Problem const& p = r.problem;
  r.shots = shots_of(plan, p, machine);
  if (r.shots != PacketShots::kNone) {  // gathered first
    r.shape = shape_of(plan, p, {p.m}, machine);
    r.arrival = {{p.m, p.ranks, 1}, {p.k, 1, sm90::kBlockK}, std::max<int64_t>(p.m, 1)};
    return;
  }
  bool const around = plan.path == Path::kRing;
  refuse_if(around && plan.transport != Transport::kPush,
            "path=ring is a push to the right neighbour; use transport=push");
  bool const remote = plan.transport == Transport::kRemote;
  refuse_if(remote && through_host(machine),
            "transport=remote reads rows where they lie, and ranks meet in host memory");
  refuse_if(remote && !plan.fused, "transport=remote reads rows while it multiplies; it is nothing without fused=yes");
  refuse_if(remote && plan.k_slices > 1, "transport=remote waits for shards, not for slices of k; use k_slices=1");
  refuse_if(remote && plan.comm_rows != 0, "transport=remote has no copies, so comm_rows stays auto");
  int64_t const whole = std::max<int64_t>(Shards{p.m, p.ranks, 1}.largest(), 1);
  int64_t at_once = rows_at_once(plan, p, machine);
  if (p.nodes > 1 && plan.comm_rows == 0) at_once = std::min(at_once, (whole + 3) / 4);  // what comes is handed on
  if (!remote) leave_room(r, blocks_to_copy(plan, Carried::kRows, at_once * p.row_bytes(), around, machine), machine);
  bool const in_pieces = plan.fused && across_pcie(machine);
  r.shape = shape_of(plan, p, rows_to_tile(p.m, at_once, in_pieces), beside_copies(r, machine));
  int64_t const rows = plan.comm_rows == 0 ? rounded(at_once, r.shape.tile_m) : at_once;
  r.arrival.shards = {p.m, p.ranks, 1};
  r.arrival.slices = {p.k, remote ? 1 : slices_of_k(plan, r.copying, at_once * p.row_bytes(), p.m, r.shape.tile_m),
                      sm90::kBlockK};
  r.arrival.comm_rows = remote ? whole : std::min(rows, whole);
  r.order = plan.in_order && plan.fused ? Order::kArrival : Order::kNaive;
  r.tiling = remote ? Tiling::kWithin : Tiling::kAcross;
  if (!remote) r.band = static_cast<int>(std::clamp<int64_t>(r.arrival.comm_rows / r.shape.tile_m, 1, r.band));
}

// As the GPU operators decide it where the plan leaves the route open, by the engine's own cost.
bool worth_staging(Resolved const& r, int64_t at_once, Machine const& machine) {
  Problem const& p = r.problem;
  auto cycles_of = [&](TiledRows chosen_for, int64_t rows, Machine const& on) {
    TileRow const shape = usual_shape(chosen_for, p.n, depth(p, on), p.layout, false, on);
    return shape.engine != EngineKind::kHost ? cost(shape, rows, p.n, depth(p, on), p.layout, chip_of(on))
                                             : cycles(shape, rows, p.n, depth(p, on), p.layout, on);
  };
  int64_t const piece = std::max<int64_t>(at_once, tile_rows_together(1));
  double const hidden =
      cycles_of({p.m}, p.m, machine) - cycles_of(rows_to_tile(p.m, at_once, true), piece, beside_copies(r, machine));
  return pieces_pay(hidden, p.m, at_once, p.ranks, r.copying);
}

void resolve_sums(Resolved& r, Plan const& plan, Machine const& machine) {
  Problem const& p = r.problem;
  refuse_if(plan.k_slices > 1, "k_slices: a partial sum leaves once it is whole, so {} is for ag_gemm", plan.k_slices);
  refuse_if(plan.transport != Transport::kPush, "transport is for ag_gemm; partial sums go by their route");
  r.way = way_of(plan, p, machine), r.shots = shots_of(plan, p, machine);
  refuse_if(r.way == Way::kSum && plan.store == StoreKind::kVector, "route=sum: store=vector does not add");
  refuse_if(r.way == Way::kSum && across_pcie(machine),
            "route=sum: no native atomics across PCIe, so nothing can be added at the owner");
  bool const staged = r.way == Way::kStage, around = r.way == Way::kRing;
  refuse_if(!staged && plan.comm_rows != 0, "comm_rows of partial sums is for route=stage");
  int64_t at_once = rows_at_once(plan, p, machine);
  bool const in_pieces = staged && r.fused && across_pcie(machine);
  int const copying =
      r.staged() ? blocks_to_copy(plan, Carried::kPartials, at_once * p.row_bytes(), around, machine) : 0;
  leave_room(r, copying, machine);
  if (in_pieces && plan.route == RouteKind::kAuto && plan.block_m == 0) r.fused = worth_staging(r, at_once, machine);
  leave_room(r, copying, machine);
  r.shape = shape_of(plan, p, rows_to_tile(p.m, at_once, in_pieces && r.fused), beside_copies(r, machine));
  if (plan.comm_rows == 0 && at_once < Shards{p.m, p.ranks, 1}.largest()) at_once = rounded(at_once, r.shape.tile_m);
  bool const everywhere = r.way == Way::kBroadcast || r.way == Way::kPackets;
  // One after the other, an owner's rows go in one piece.
  int const tile_m = r.fused ? r.shape.tile_m : static_cast<int>(std::max<int64_t>(p.m, 1));
  r.bands = {{p.m, everywhere ? 1 : p.ranks, 1}, tile_m};
  if (staged && r.fused) {
    int64_t const shard = r.bands.shards.largest() / tile_m + 2;
    r.bands.tall = static_cast<int>(std::clamp<int64_t>(at_once / tile_m, 1, shard));
  }
  bool const follows = r.fused && plan.in_order && !everywhere;
  r.order = follows ? around ? Order::kRelay : Order::kRotated : Order::kNaive;
  r.together = r.staged() ? tile_rows_together(tile_m) : r.band;
  if (r.staged() && r.fused)
    r.band = std::max(static_cast<int>(std::clamp<int64_t>(r.bands.height() / tile_m, 1, r.band)), r.together);
}

}  // namespace

Schedule Resolved::schedule(int rank) const {
  Shards const shards = way == Way::kNone ? arrival.shards : bands.shards;
  if (problem.nodes > 1 && order != Order::kNaive) {
    bool const gathers = way == Way::kNone;
    int const of_node = problem.node_ranks();
    return arrange(gathers ? turns_of_gather(shards, of_node, arrival.comm_rows, rank)
                           : turns_of_sums(shards, of_node, bands.height(), rank),
                   gathers, problem.m, shape.tile_m, static_cast<int>(tiles_n()), band);
  }
  return arrange(order, tiling, shards, shape.tile_m, static_cast<int>(tiles_n()), band,
                 way == Way::kBroadcast || way == Way::kPackets ? 0 : rank, together);
}

namespace {

/// The bytes of the whole problem by a kernel that loads and stores: one call a shot, and a pass that sums.
double by_blocks_us(Problem const& p, Machine const& machine) {
  double const shot = machine.call_us + 2 * machine.gemm_us, sum = 2 * machine.gemm_us;
  auto at = [&](double bytes) { return bytes / machine.link.block_gbps / 1e3; };
  if (p.gathers()) return shot + at(p.sent_bytes());
  if (p.op == Op::kGemmReduceScatter) return shot + sum + at(p.sent_bytes());
  double const to_all =
      static_cast<double>(p.ranks - 1) * static_cast<double>(p.m) * static_cast<double>(p.row_bytes());
  return std::min(shot + sum + at(to_all), 2 * shot + sum + at(p.sent_bytes()));
}

// In the order of arrivals and departures tiles that share weights are multiplied one band of rows after the other, and
// weights that do not fit into the cache come from memory for each band.
double weights_us(Resolved const& r, Machine const& machine) {
  Problem const& p = r.problem;
  if (machine.engine == EngineKind::kHost || p.m == 0) return 0;
  double const bytes = static_cast<double>(p.local_n() * p.local_k() * size_of(p.dtype));
  int64_t const of_band = r.band * std::max<int64_t>(r.tiles_n(), 1);
  int64_t const side_by_side = std::max<int64_t>(workers(r.shape, machine) / of_band, 1);  // bands that read together
  int64_t const tall = side_by_side * r.band * r.shape.tile_m;
  double const passes = static_cast<double>((p.m + tall - 1) / tall);
  return bytes * (1 + (passes - 1) * read_again(bytes, machine)) / machine.memory_gbps / 1e3;
}

}  // namespace

double packet_row_bytes(Problem const& p) {
  return static_cast<double>(packets_of(p.row_bytes()) * int64_t{sizeof(Packet)});
}

double packets_us(Problem const& p, PacketShots shots, Machine const& machine) {
  bool const all_reduce = p.op == Op::kGemmAllReduce, two = all_reduce && shots == PacketShots::kTwo;
  int64_t const shard = Shards{p.m, p.ranks, 1}.largest(), rows = two ? 2 * shard : all_reduce ? p.m : shard;
  double const sent = static_cast<double>(rows * (p.ranks - 1)) * packet_row_bytes(p);
  return kPacketsStartUs + (two ? 2 : 1) * (kPacketsTripUs + machine.link.flag_us) +
         sent / machine.link.block_gbps / 1e3;
}

Parts parts(Problem const& p, Machine const& any) {
  Machine const machine = machine_for(any, p.dtype);
  Parts t;
  LinkRates const& link = machine.link;
  double const bytes = p.sent_bytes(), copies = p.node_ranks() - 1;
  auto at = [](double bytes, double gbps) { return bytes / gbps / 1e3; };
  double const shots = p.op == Op::kGemmAllReduce ? 2 : 1;
  t.collective_us = p.ranks == 1 ? 0 : link.collective_us + at(bytes, link.collective_gbps);
  if (p.nodes > 1) {  // rings over all ranks, one for each interface of a node
    double const around = p.moved_bytes() * (p.ranks - 1) / p.ranks;
    t.collective_us = link.collective_us + shots * machine.nic_us +
                      std::max(at(around, link.collective_gbps), at(around / p.node_ranks(), machine.nic_gbps));
  }
  double const by_copies =
      p.ranks == 1 ? 0 : shots * (link.start_us + copies * link.copy_us) + at(bytes, link.push_gbps);
  double const by_rails = p.nodes == 1 ? 0 : shots * machine.nic_us + at(p.rail_bytes(), machine.nic_gbps);
  t.comm_us = t.copied_us = std::min(t.collective_us, std::max(by_copies, by_rails));
  if (machine.engine != EngineKind::kHost && p.ranks > 1 && p.nodes == 1 && !through_host(machine))
    t.comm_us = std::min(t.comm_us, by_blocks_us(p, machine));
  if (PacketShots const shots = shots_of({}, p, machine); shots != PacketShots::kNone && p.ranks > 1)
    t.comm_us = std::min(t.comm_us, packets_us(p, shots, machine));
  double const fastest = std::max({link.store_gbps, link.load_gbps, link.block_gbps});
  t.least_comm_us = std::min(t.comm_us, std::max(by_rails, shots * link.flag_us + at(bytes, fastest)));
  TileRow const shape = best_shape(p.m, p.local_n(), depth(p, machine), p.layout, p.gated, machine);
  double const of_gemm = cycles(shape, p.m, p.local_n(), depth(p, machine), p.layout, machine) / machine.library_speed;
  double const rough = of_gemm / machine.clock_mhz;
  t.clock_mhz = clock_mhz(machine, busy(rough, t.comm_us));
  t.gemm_us = rough <= 0 ? 0 : machine.gemm_us + of_gemm / t.clock_mhz;
  t.none_us = t.gemm_us + t.collective_us;
  return t;
}

Resolved resolve(Problem const& problem, Plan const& plan, Machine const& any) {
  require_plannable(problem);
  Machine const machine = machine_for(any, problem.dtype);
  parse_plan(to_string(plan));  // a plan must be one that a line can say
  refuse_if(problem.nodes > 1 && machine.nic_gbps <= 0,
            "machine {} says nothing of what lies between nodes; give nic_gbps and nic_us in its file", machine.name);
  refuse_if(problem.nodes > 1 && through_host(machine),
            "machine {} has GPUs that meet in host memory, of which several nodes are not simulated", machine.name);
  require_pushes(problem, plan);
  Resolved r;
  r.problem = problem, r.plan = plan, r.fused = plan.fused && problem.ranks > 1;
  r.processors = machine.processors;
  r.band = plan.band > 0 ? plan.band : machine.engine == EngineKind::kHost ? 4 : 8;
  refuse_if(plan.wide_slots && machine.engine != EngineKind::kHost, "slots=fp32 is not there on GPUs; use slots=dtype");
  refuse_if(machine.engine != EngineKind::kHost && size_of(problem.dtype) > 2,
            "{} is for the host engine; GPU engines multiply bf16, fp16, int8 and fp8", name(problem.dtype));
  bool const one_byte = size_of(problem.dtype) == 1;
  refuse_if(one_byte && problem.layout == WeightLayout::kInOut, "weights of {} are [out,in]", name(problem.dtype));
  refuse_if(one_byte && problem.k % k_unit(problem.dtype) != 0, "k is {}; of {} a rank's k is a multiple of {}",
            problem.k, name(problem.dtype), k_unit(problem.dtype));
  if (problem.gathers())
    resolve_gather(r, plan, machine);
  else
    resolve_sums(r, plan, machine);
  double const clock = parts(problem, machine).clock_mhz;
  Machine const gemm_machine = beside_copies(r, machine);
  int64_t const n = problem.local_n(), k = depth(problem, machine);
  r.tile_us = tile_cycles(r.shape, problem.m, n, k, problem.layout, gemm_machine) / clock;
  double const tiles_us = cycles(r.shape, problem.m, n, k, problem.layout, gemm_machine) / clock,
               least_us = r.fused ? weights_us(r, machine) : 0;
  if (tiles_us > 0) r.memory_share = std::min(1.0, least_us / tiles_us);
  if (tiles_us > 0) r.tile_us *= std::max(1.0, least_us / tiles_us);
  r.gemm_us = machine.gemm_us + std::max(tiles_us, least_us);
  return r;
}

void require_plannable(Problem const& p) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  auto require = [&](bool ok, std::string_view what, int64_t given, int64_t least, int64_t most) {
    if (!ok) throw Error(ErrorKind::kInvalid, fmt::format("{} is {}; allowed are {} to {}", what, given, least, most));
  };
  for (auto const& [what, size] : {std::pair{"m", p.m}, {"n", p.n}, {"k", p.k}})
    require(size >= 1 && size <= kMost, what, size, 1, kMost);
  require(p.ranks >= 1 && p.ranks <= kMaxRanks, "tp", p.ranks, 1, kMaxRanks);
  require(p.nodes >= 1 && p.nodes <= p.ranks, "nodes", p.nodes, 1, p.ranks);
  if (p.ranks % p.nodes != 0)
    throw Error(ErrorKind::kInvalid, fmt::format("{} ranks do not make {} nodes of equally many", p.ranks, p.nodes));
  // The simulator walks every tile of every rank.
  constexpr double kMostTiles = 2e6;
  double const tiles = double{1} * p.ranks * (p.m / 64 + 1) * (p.local_n() / 64 + 1);
  if (tiles > kMostTiles * 8)
    throw Error(ErrorKind::kInvalid, fmt::format("{} has some {:.0f} tiles; up to {:.0f} are simulated", to_string(p),
                                                 tiles, kMostTiles * 8));
}

std::string to_string(Problem const& p) {
  return fmt::format("{} m {}, n {}, k {}, {} ranks{}, {}{}{}", name(p.op), p.m, p.n, p.k, p.ranks,
                     p.nodes > 1 ? fmt::format(" on {} nodes", p.nodes) : "", name(p.dtype),
                     p.layout == WeightLayout::kInOut ? ", [in,out]" : "", p.gated ? ", gated" : "");
}

}  // namespace flux
