#pragma once
// What tuning found, kept in one JSON file: a help, never needed. A file that cannot be used costs a sentence.
#include <filesystem>
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

/// A plan, and where it comes from.
struct FoundPlan {
  enum class Source { kTuned, kNear, kModel };
  Plan plan;
  Source source = Source::kModel;
  double expected_us = 0;
  std::string why;  ///< in a sentence
};

class PlanCache {
 public:
  static constexpr int kSchema = 1;

  /// A file that is not there is an empty cache. Never throws: one that is torn, foreign or may not be read is empty
  /// too, and note() says so.
  static PlanCache read(std::filesystem::path const& path);
  /// Adds to the file, whole or not at all, while no other process does. Never throws: returns what went wrong, in a
  /// sentence, or nothing. A file that is no cache stays as it is.
  static std::string add(std::filesystem::path const& path, std::vector<TunedPlan> const& plans);

  /// The text of the file and back. Throws Error{kInvalid}, one sentence.
  std::string text() const;
  static PlanCache parse(std::string_view text, std::string_view name);

  /// Replaces the plan of the same problem on a like machine.
  void put(TunedPlan const& plan);
  /// The tuned plan; else the best of the plans of the nearest m and of the model's own, each at the simulated cost
  /// times what its neighbour was measured over simulated; else the model's.
  FoundPlan find(Problem const& problem, Machine const& machine) const;

  std::vector<TunedPlan> const& plans() const { return plans_; }
  std::string const& note() const { return note_; }

 private:
  std::vector<TunedPlan> plans_;
  std::string note_;
};

}  // namespace flux
