#include "plan/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "flux/error.h"

namespace flux {
namespace {

constexpr size_t kRefined = 4;  // how many of the best get their smaller knobs varied

class Search {
 public:
  Search(Problem const& problem, Machine const& machine, Effort effort)
      : problem_(problem), machine_(machine_for(machine, problem.dtype)), effort_(effort) {}

  Ranking run() {
    Plan apart;
    apart.fused = false;
    consider(apart);
    consider({});  // what an operator does by its own rules
    for (Plan const& way : ways()) {
      consider(way);  // in the tile that an operator takes on its own
      if (effort_ == Effort::kQuick) continue;
      for (TileRow const& shape : shapes()) {
        Plan plan = way;
        plan.block_m = shape.tile_m, plan.block_n = shape.tile_n;
        consider(plan);
      }
    }
    if (effort_ == Effort::kAll) refine();
    return ranking();
  }
  Ranking run(std::vector<Plan> const& plans) {
    for (Plan const& plan : plans) {
      least_us_ = 0;  // nobody asked for the best alone
      consider(plan);
    }
    return ranking();
  }

 private:
  Plan with(std::function<void(Plan&)> const& change) const {
    Plan plan;
    change(plan);
    return plan;
  }

  // How data travels: the knobs that depend on each other.
  std::vector<Plan> ways() const {
    std::vector<Plan> list;
    if (problem_.nodes > 1) return between_nodes();
    if (problem_.gathers()) {
      for (Transport transport : {Transport::kPush, Transport::kPull})
        for (int64_t rows : heights())
          for (int blocks : carriers())
            list.push_back(with([&](Plan& p) { p.transport = transport, p.comm_rows = rows, p.copy_blocks = blocks; }));
      list.push_back(with([](Plan& p) { p.transport = Transport::kRemote; }));
      list.push_back(with([](Plan& p) { p.path = Path::kRing; }));
      return list;
    }
    auto add = [&](Plan plan) {
      if (problem_.op == Op::kGemmAllReduce) plan.shots = Shots::kTwoShot;
      list.push_back(plan);
    };
    if (problem_.op == Op::kGemmAllReduce) {
      list.push_back(with([](Plan& p) { p.shots = Shots::kOneShot, p.route = RouteKind::kPush; }));
      if (machine_.engine != EngineKind::kHost)
        for (Shots shots : {Shots::kOneShot, Shots::kTwoShot})
          list.push_back(with([&](Plan& p) { p.shots = shots, p.route = RouteKind::kPackets; }));
    }
    add(with([](Plan& p) { p.route = RouteKind::kPush; }));
    for (int64_t rows : heights())
      for (int blocks : carriers())
        add(with([&](Plan& p) { p.route = RouteKind::kStage, p.comm_rows = rows, p.copy_blocks = blocks; }));
    add(with([](Plan& p) { p.route = RouteKind::kSum; }));
    add(with([](Plan& p) { p.route = RouteKind::kRing; }));
    return list;
  }

  // Of those the ones that several nodes can do.
  std::vector<Plan> between_nodes() const {
    std::vector<Plan> list;
    if (!problem_.gathers()) list.push_back(with([](Plan& p) { p.route = RouteKind::kPush; }));
    for (int64_t rows : heights())
      for (int blocks : carriers())
        list.push_back(with([&](Plan& p) {
          if (!problem_.gathers()) p.route = RouteKind::kStage;
          p.comm_rows = rows, p.copy_blocks = blocks;
        }));
    return list;
  }

  // What carries them: as the operator chooses, the copy engine, some blocks of the GPU.
  std::vector<int> carriers() const {
    if (machine_.engine == EngineKind::kHost) return {kChosenCopies};
    return {kChosenCopies, 0, 8};
  }

  // Communication tiles: a shard, and parts of it down to a tile of some rows.
  std::vector<int64_t> heights() const {
    constexpr int64_t kLeast = 128;
    std::vector<int64_t> list = {0, kWholeShard};
    int64_t const shard = (problem_.m + problem_.ranks - 1) / problem_.ranks;
    for (int64_t parts = 2; parts <= 8 && shard / parts >= kLeast; parts *= 2)
      list.push_back((shard + parts - 1) / parts);
    return list;
  }

  // The fastest GEMM first, so that a bound is found early.
  std::vector<TileRow> shapes() const {
    auto list = tile_shapes(machine_, problem_.layout, problem_.gated);
    std::stable_sort(list.begin(), list.end(),
                     [&](TileRow const& a, TileRow const& b) { return cycles_of(a) < cycles_of(b); });
    return list;
  }
  double cycles_of(TileRow const& shape) const {
    return cycles(shape, problem_.m, problem_.local_n(), depth(problem_, machine_), problem_.layout, machine_);
  }

  void consider(Plan const& plan) {
    Candidate c;
    c.plan = plan;
    if (!seen_.insert(to_string(plan)).second) return;
    try {
      Resolved const resolved = resolve(problem_, plan, machine_);
      if (least_us_ > 0 && resolved.gemm_us > least_us_) {
        c.out = fmt::format("its GEMM alone takes {:.0f} us; a whole call takes {:.0f}", resolved.gemm_us, least_us_);
      } else {
        Simulation const s = simulate(problem_, plan, machine_);
        c.total_us = s.total_us, c.waited_us = s.waited_us, c.stalled_us = s.stalled_us, c.behind_us = s.behind_us;
        if (resolved.way == Way::kSum)
          c.out = "adds in the order of arrival, so bits differ from run to run; it is never chosen, only asked for";
        else if (least_us_ == 0 || c.total_us < least_us_)
          least_us_ = c.total_us;
      }
    } catch (Error const& refused) {
      if (refused.kind() != ErrorKind::kUnsupported) throw;
      c.out = refused.what();
    }
    candidates_.push_back(std::move(c));
  }

  void sort() {
    std::stable_sort(candidates_.begin(), candidates_.end(), [](Candidate const& a, Candidate const& b) {
      if (a.chosen_from() != b.chosen_from()) return a.chosen_from();
      return a.chosen_from() && a.total_us < b.total_us;
    });
  }

  void refine() {
    sort();
    std::vector<Plan> best;
    for (Candidate const& c : candidates_)
      if (c.chosen_from() && c.plan.fused && best.size() < kRefined) best.push_back(c.plan);
    for (Plan const& plan : best) {
      auto vary = [&](auto Plan::*knob, auto const& values) {
        for (auto const value : values) {
          Plan other = plan;
          other.*knob = value;
          consider(other);
        }
      };
      vary(&Plan::in_order, std::vector{false});
      vary(&Plan::band, std::vector{2, 4, 16});
      if (problem_.gathers())
        vary(&Plan::k_slices, std::vector{2, 4});
      else
        vary(&Plan::store, std::vector{StoreKind::kVector, StoreKind::kBulk});
    }
  }

  // The library's GEMM and its collective are no plan of an operator, but the measure of all.
  void consider_libraries() {
    Candidate c;
    c.plan.fused = false, c.by_libraries = true, c.total_us = parts(problem_, machine_).none_us;
    c.out = "the best library GEMM, then the collective library: the operators do not call them, a program can";
    candidates_.push_back(c);
  }

  // What the model cannot tell apart is decided by simplicity, and nothing takes the place of the operator's own rules
  // that does not promise more than the model errs by between plans, which is known across PCIe (docs/simulator.md).
  void prefer_simple() {
    constexpr double kAlike = 1.005;
    double const clearly = across_pcie(machine_.link.kind) ? 1.065 : kAlike;
    auto words = [](Candidate const& c) { return std::ranges::count(short_line(c.plan), '='); };
    auto best = candidates_.begin();
    for (auto c = best; c != candidates_.end() && c->chosen_from(); ++c) {
      double const over = c->total_us / candidates_.front().total_us;
      bool const by_rules = c->plan == Plan{};
      if (by_rules ? over <= clearly : best->plan != Plan{} && over <= kAlike && words(*c) < words(*best)) best = c;
    }
    std::rotate(candidates_.begin(), best, best + 1);
  }

  Ranking ranking() {
    consider_libraries();
    sort();
    prefer_simple();
    if (!candidates_.front().chosen_from())
      throw Error(ErrorKind::kUnsupported, fmt::format("nothing serves {} on {}: {}", to_string(problem_),
                                                       machine_.name, candidates_.front().out));
    return {problem_, parts(problem_, machine_), std::move(candidates_)};
  }

  Problem const& problem_;
  Machine const machine_;
  Effort effort_;
  std::set<std::string> seen_;
  std::vector<Candidate> candidates_;
  double least_us_ = 0;
};

}  // namespace

Ranking rank_candidates(Problem const& problem, Machine const& machine, Effort effort) {
  require_plannable(problem);
  return Search(problem, machine, effort).run();
}

Ranking rank_plans(Problem const& problem, Machine const& machine, std::vector<Plan> const& plans) {
  require_plannable(problem);
  return Search(problem, machine, Effort::kAll).run(plans);
}

std::string short_line(Plan const& plan) {
  std::istringstream words(to_string(plan)), defaults(to_string(Plan{}));
  std::string line;
  for (std::string word, usual; words >> word && defaults >> usual;)
    if (word != usual) line += fmt::format("{}{}", line.empty() ? "" : " ", word);
  return line.empty() ? "all knobs auto" : line;
}

}  // namespace flux
