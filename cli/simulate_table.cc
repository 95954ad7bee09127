#include "cli/simulate_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "plan/step.h"

namespace flux::cli {
namespace {

// The largest speed-ups of arXiv 2406.06858: 128 GPUs (2 replicas, 8 stages, 8 ranks) in training; 8 GPUs, 8 prompts of
// 2048 tokens, and batches of 64 and 512 in decoding. 0: the paper has none.
struct Published {
  char const* machine;
  Phase phase;
  double over_none, over_chunked;
};
constexpr Published kPublished[] = {
    {"a100-pcie", Phase::kTrain, 1.24, 1.37},  {"a100-pcie", Phase::kPrefill, 1.46, 2.06},
    {"a100-pcie", Phase::kDecode, 1.28, 1.69}, {"a100-sxm", Phase::kTrain, 1.05, 1.04},
    {"a100-sxm", Phase::kPrefill, 1.45, 1.14}, {"a100-sxm", Phase::kDecode, 1.30, 2.10},
    {"h800", Phase::kTrain, 1.10, 1.05},       {"h800", Phase::kPrefill, 1.66, 1.18},
    {"h800", Phase::kDecode, 0, 1.76},
};
constexpr double kWithin = 0.15;
constexpr int64_t kTrainBatch = 256;

struct Cell {
  std::string model;
  int64_t batch = 0;
  Step none, chunked, fused;
  double over_none() const { return none.total_us() / fused.total_us(); }
  double over_chunked() const { return chunked.total_us() / fused.total_us(); }
};

Cell simulate_cell(Phase phase, char const* model, int64_t batch, Costs& costs) {
  StepProblem p;
  p.phase = phase, p.model = find_transformer(model), p.batch = batch;
  if (phase == Phase::kTrain) p.pp = 8, p.dp = 2;
  return {model, batch, simulate_step(p, Method::kNone, costs), simulate_step(p, Method::kChunked, costs),
          simulate_step(p, Method::kFlux, costs)};
}

nlohmann::ordered_json to_json(Cell const& c) {
  return {{"model", c.model},
          {"batch", c.batch},
          {"none_us", c.none.total_us()},
          {"chunked_us", c.chunked.total_us()},
          {"flux_us", c.fused.total_us()},
          {"none_communication_us", c.none.tp_us},
          {"none_share", c.none.tp_share()},
          {"chunked_share", c.chunked.tp_share()},
          {"flux_share", c.fused.tp_share()},
          {"over_none", c.over_none()},
          {"over_chunked", c.over_chunked()}};
}

void print(char const* machine, Phase phase, Cell const& c) {
  auto ms = [](Step const& step) { return step.total_us() / 1e3; };
  auto share = [](Step const& step) { return fmt::format("{:.0f} %", 100 * step.tp_share()); };
  fmt::print("{:<10} {:<8} {:<11} {:>6} {:>11.2f} {:>11.2f} {:>11.2f} {:>6} {:>8} {:>6} {:>10.2f} {:>10.2f}\n", machine,
             name(phase), c.model, c.batch, ms(c.none), ms(c.chunked), ms(c.fused), share(c.none), share(c.chunked),
             share(c.fused), c.over_none(), c.over_chunked());
}

// Where a published speed-up is not met: how much more or less would have to be hidden than is.
std::string why_outside(std::vector<Cell> const& cells, double published) {
  Cell const& c = *std::ranges::max_element(cells, {}, &Cell::over_none);
  double const none = c.none.total_us();
  return fmt::format(
      "{} at batch {}: of {:.0f} us of communication {:.0f} are hidden, and {:.0f} would be by the "
      "published figure",
      c.model, c.batch, c.none.tp_us, none - c.fused.total_us(), none * (1 - 1 / published));
}

std::vector<int64_t> batches_of(Phase phase) {
  if (phase == Phase::kTrain) return {kTrainBatch};
  return phase == Phase::kPrefill ? std::vector<int64_t>{8} : std::vector<int64_t>{64, 512};
}

}  // namespace

void print_model_table(bool json) {
  nlohmann::ordered_json all;
  int compared = 0, near = 0;
  if (!json)
    fmt::print("{:<10} {:<8} {:<11} {:>6} {:>11} {:>11} {:>11} {:>22} {:>10} {:>10}\n{:>84} {:>21}\n", "cluster",
               "phase", "model", "batch", "none ms", "chunked ms", "flux ms", "communication: none,", "speed-up",
               "speed-up", "chunked, flux", "over none over chunked");
  for (Published const& cell : kPublished) {
    Costs costs(find_machine(cell.machine));
    std::vector<Cell> cells;
    for (char const* model : {"gpt3-175b", "llama2-70b"})
      for (int64_t batch : batches_of(cell.phase)) cells.push_back(simulate_cell(cell.phase, model, batch, costs));
    nlohmann::ordered_json of = {{"machine", cell.machine}, {"phase", name(cell.phase)}};
    for (Cell const& c : cells) {
      if (!json) print(cell.machine, cell.phase, c);
      of["rows"].push_back(to_json(c));
    }
    double const most = std::ranges::max_element(cells, {}, &Cell::over_none)->over_none(),
                 most_chunked = std::ranges::max_element(cells, {}, &Cell::over_chunked)->over_chunked();
    bool const there = cell.over_none > 0, within = there && std::abs(most - cell.over_none) <= kWithin;
    compared += there, near += within;
    of["over_none"] = most, of["over_chunked"] = most_chunked, of["published_over_chunked"] = cell.over_chunked;
    of["published_over_none"] = there ? nlohmann::ordered_json(cell.over_none) : nlohmann::ordered_json();
    of["within"] = within;
    std::string const why = there && !within ? why_outside(cells, cell.over_none) : "";
    if (!why.empty()) of["why"] = why;
    if (cell.phase == Phase::kTrain)
      for (int64_t batch : {kTrainBatch / 4, kTrainBatch * 4})
        of["other_batches"][fmt::format("{}", batch)] =
            simulate_cell(cell.phase, "gpt3-175b", batch, costs).over_none();
    if (!json) {
      fmt::print("{:<10} {:<8} largest: over none {:.2f}, published {}{}; over chunked {:.2f}, published {:.2f}\n",
                 cell.machine, name(cell.phase), most, there ? fmt::format("{:.2f}", cell.over_none) : "none",
                 !there   ? ""
                 : within ? ""
                          : " (outside)",
                 most_chunked, cell.over_chunked);
      if (!why.empty()) fmt::print("  {}\n", why);
      if (of.contains("other_batches"))
        for (auto const& [batch, speed_up] : of["other_batches"].items())
          fmt::print("  with a batch of {}: gpt3-175b {:.2f}\n", batch, speed_up.get<double>());
      fmt::print("\n");
    }
    all["cells"].push_back(of);
  }
  all["compared"] = compared, all["within"] = near;
  if (json)
    fmt::print("{}\n", all.dump(2));
  else
    fmt::print("{} of {} published speed-ups over none are met within {}\n", near, compared, kWithin);
}

}  // namespace flux::cli
