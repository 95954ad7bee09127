#pragma once
// What tuning found, kept in one JSON file: a help, never needed. A file that cannot be used costs a sentence.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/candidates.h"

namespace flux {

struct TunedPlan {
  std::string machine;  ///< key() of it: properties, no name
  Problem problem;
  Plan plan;
  double measured_us = 0;
  bool operator==(TunedPlan const&) const = default;
};

/// A plan, and where it comes from: tuned for this problem, for a near one, or left to the operators' own rules.
struct FoundPlan {
  enum class Source { kTuned, kNear, kOpen };
  Plan plan;
  Source source = Source::kOpen;
  double expected_us = 0;  ///< 0: nobody knows
  std::string why;         ///< in a sentence
};

class PlanCache {
 public:
  static constexpr int kSchema = 2;

  /// A file that is not there is an empty cache. Never throws: one that is torn, foreign or may not be read is empty
  /// too, and note() says so.
  static PlanCache read(std::filesystem::path const& path);
  /// Adds to the file, whole or not at all, while no other process does. Never throws: returns what went wrong, in a
  /// sentence, or nothing. A file that is no cache stays as it is.
  static std::string add(std::filesystem::path const& path, std::vector<TunedPlan> const& plans,
                         std::vector<Machine> const& machines = {});

  /// The text of the file and back. Throws Error{kInvalid}, one sentence.
  std::string text() const;
  static PlanCache parse(std::string_view text, std::string_view name);

  /// Replaces the plan of the same problem on a like machine.
  void put(TunedPlan const& plan);
  /// Replaces the machine of the same key: by its numbers plans were ranked, and are compared where no m is the same.
  void put(Machine const& machine);
  /// On a machine of this key: the tuned plan; else the best of the plans of the nearest m and of an open one, each at
  /// the simulated cost times what the neighbour was measured over simulated; else an open one. Simulates at most five
  /// times, and not at all where nothing of this problem but m was tuned.
  FoundPlan find(Problem const& problem, std::string const& machine) const;

  std::vector<TunedPlan> const& plans() const { return plans_; }
  /// The one kept here, or a named one.
  std::optional<Machine> machine(std::string const& key) const;
  std::string const& note() const { return note_; }

 private:
  std::vector<TunedPlan> plans_;
  std::vector<Machine> machines_;
  std::string note_;
};

}  // namespace flux
