#include "plan/plan_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "flux/error.h"
#include "io/atomic_file.h"
#include "io/file_lock.h"
#include "io/json_file.h"
#include "io/quote.h"

namespace flux {
namespace {

constexpr char kKind[] = "flux tuned plans";

bool same_but_m(Problem a, Problem const& b) { return a.m = b.m, a == b; }

nlohmann::ordered_json to_json(TunedPlan const& t) {
  Problem const& p = t.problem;
  return {{"machine", t.machine},
          {"op", name(p.op)},
          {"m", p.m},
          {"n", p.n},
          {"k", p.k},
          {"tp", p.ranks},
          {"dtype", name(p.dtype)},
          {"weight", name(p.layout)},
          {"gated", p.gated},
          {"plan", to_string(t.plan)},
          {"measured_us", t.measured_us}};
}

// Every member has to be there and to be what it should; json's own errors say little, so they are not shown.
TunedPlan from_json(nlohmann::json const& json) {
  TunedPlan t;
  Problem& p = t.problem;
  t.machine = json.at("machine").get<std::string>();
  p.op = parse_op(json.at("op").get<std::string>());
  for (auto const& [key, to] : {std::pair{"m", &p.m}, {"n", &p.n}, {"k", &p.k}}) {
    if (!json.at(key).is_number_integer()) throw Error(ErrorKind::kInvalid, fmt::format("{} is no whole number", key));
    *to = json.at(key).get<int64_t>();
  }
  if (!json.at("tp").is_number_integer()) throw Error(ErrorKind::kInvalid, "tp is no whole number");
  auto const ranks = json.at("tp").get<int64_t>();
  p.ranks = static_cast<int>(std::clamp<int64_t>(ranks, -1, 1 << 20));
  p.dtype = parse_dtype(json.at("dtype").get<std::string>());
  p.layout = parse_weight_layout(json.at("weight").get<std::string>());
  p.gated = json.at("gated").get<bool>();
  require_plannable(p);
  t.plan = parse_plan(json.at("plan").get<std::string>());
  t.measured_us = json.at("measured_us").get<double>();
  if (!(t.measured_us > 0 && t.measured_us < 1e12))
    throw Error(ErrorKind::kInvalid, fmt::format("measured_us is {}; allowed is more than 0", t.measured_us));
  return t;
}

}  // namespace

PlanCache PlanCache::parse(std::string_view text, std::string_view name) {
  auto fail = [&](std::string const& what) {
    throw Error(ErrorKind::kInvalid, fmt::format("plan cache {} {}", quote(name), what));
  };
  auto const json = parse_json(text, name);
  if (!json.is_object() || json.value("kind", nlohmann::json()) != kKind) fail("is no file of tuned plans");
  if (json.value("schema", nlohmann::json()) != kSchema)
    fail(fmt::format("is of another schema; this build reads schema {}", kSchema));
  if (!json.contains("plans") || !json["plans"].is_array()) fail("has no list \"plans\"");
  PlanCache cache;
  for (auto const& one : json["plans"]) {
    auto const number = cache.plans_.size() + 1;
    try {
      cache.put(from_json(one));
    } catch (nlohmann::json::exception const&) {
      fail(fmt::format("lacks a member in plan {}, or has one of another type", number));
    } catch (Error const& error) {
      fail(fmt::format("has a wrong plan {}: {}", number, error.what()));
    }
  }
  if (!json.contains("machines") || !json["machines"].is_array()) fail("has no list \"machines\"");
  for (auto const& one : json["machines"])
    cache.put(parse_machine(one.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), name));
  return cache;
}

std::string PlanCache::text() const {
  // A plan a line: a file that people may read and diff.
  std::string text = fmt::format("{{\n  \"kind\": \"{}\",\n  \"schema\": {},\n  \"plans\": [", kKind, kSchema);
  for (size_t i = 0; i < plans_.size(); ++i)
    text += fmt::format("{}\n    {}", i > 0 ? "," : "", to_json(plans_[i]).dump());
  text += "\n  ],\n  \"machines\": [";
  for (size_t i = 0; i < machines_.size(); ++i)
    text += fmt::format("{}\n    {}", i > 0 ? "," : "", nlohmann::ordered_json::parse(to_json(machines_[i])).dump());
  return text + "\n  ]\n}\n";
}

PlanCache PlanCache::read(std::filesystem::path const& path) {
  PlanCache cache;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return cache;
  try {
    return parse(read_json(path).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), path.native());
  } catch (std::exception const& error) {
    cache.note_ = fmt::format("{}; going on without tuned plans", error.what());
  }
  return cache;
}

std::string PlanCache::add(std::filesystem::path const& path, std::vector<TunedPlan> const& plans,
                           std::vector<Machine> const& machines) {
  try {
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
    FileLock const lock(path);
    PlanCache cache = read(path);
    if (!cache.note().empty()) return fmt::format("{}; it stays as it is, remove it to begin anew", cache.note());
    for (TunedPlan const& plan : plans) cache.put(plan);
    for (Machine const& machine : machines) cache.put(machine);
    write_file(path, cache.text());
  } catch (std::exception const& error) {
    return fmt::format("tuned plans are not kept: {}", error.what());
  }
  return {};
}

void PlanCache::put(TunedPlan const& plan) {
  auto const same = std::ranges::find_if(
      plans_, [&](TunedPlan const& other) { return other.machine == plan.machine && other.problem == plan.problem; });
  if (same != plans_.end())
    *same = plan;
  else
    plans_.push_back(plan);
}

void PlanCache::put(Machine const& machine) {
  auto const same = std::ranges::find_if(machines_, [&](Machine const& m) { return key(m) == key(machine); });
  if (same != machines_.end())
    *same = machine;
  else
    machines_.push_back(machine);
}

std::optional<Machine> PlanCache::machine(std::string const& wanted) const {
  for (auto const* list : {&machines_, &named_machines()})
    for (Machine const& machine : *list)
      if (key(machine) == wanted) return machine;
  return {};
}

FoundPlan PlanCache::find(Problem const& problem, std::string const& of) const {
  std::vector<TunedPlan const*> near;
  for (TunedPlan const& t : plans_) {
    if (t.machine != of || !same_but_m(t.problem, problem)) continue;
    if (t.problem.m == problem.m)
      return {t.plan, FoundPlan::Source::kTuned, t.measured_us, "tuned for this very problem"};
    near.push_back(&t);
  }
  auto distance = [&](TunedPlan const* t) {
    return std::abs(std::log2(static_cast<double>(t->problem.m) / static_cast<double>(problem.m)));
  };
  std::ranges::stable_sort(near, {}, distance);
  FoundPlan found;
  found.why = "nothing like it was tuned";
  auto const by = near.empty() ? std::nullopt : machine(of);
  constexpr size_t kNeighbours = 2;
  constexpr double kFarthest = 2;  // four times as many rows, or a quarter
  for (size_t i = 0; by && i < std::min(near.size(), kNeighbours) && distance(near[i]) <= kFarthest; ++i) {
    TunedPlan const& t = *near[i];
    try {
      double const off = t.measured_us / simulate(t.problem, t.plan, *by).total_us;
      if (found.expected_us == 0) {
        found.expected_us = off * simulate(problem, {}, *by).total_us;
        found.why = fmt::format("as fast by itself as with the plan tuned for m {}", t.problem.m);
      }
      double const us = off * simulate(problem, t.plan, *by).total_us;
      if (us >= found.expected_us) continue;
      found = {t.plan, FoundPlan::Source::kNear, us,
               fmt::format("tuned for m {}, where it took {:.2f} of its simulated time", t.problem.m, off)};
    } catch (Error const&) {  // a plan of another build, or one that does not fit these rows
    }
  }
  return found;
}

}  // namespace flux
