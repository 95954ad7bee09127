#pragma once
// What an overlap suite times on one problem: GEMMs alone, collectives alone, and the methods that become rows.
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/gemm/chunked.h"
#include "bench/gemm/collectives.h"
#include "bench/gemm/lockstep.h"
#include "bench/gemm/ours.h"
#include "bench/gemm/overlap_suite.h"

namespace flux::bench {

/// What a timed method is for, beside its times.
struct Label {
  enum Kind { kGemm, kCollective, kPlain, kOpen, kRow } kind;
  std::string variant = {}, plan = {};
  std::optional<double> error = {};
  bool is_row() const { return kind == kRow || kind == kOpen; }
};

class OverlapMethods {
 public:
  OverlapMethods(GemmProblem const& problem, OverlapSuite const& options, CublasLt& cublas, std::mt19937& random);

  std::vector<GpuMethod> methods;  ///< on capture_stream()
  std::vector<Label> labels;       ///< of each

  /// The place of the fastest of a kind.
  size_t fastest(Label::Kind kind) const;
  double median(size_t method) const { return methods[method].quantile(0.5); }
  /// The place of the collective that `none` goes by; and makes it go by the one at another place.
  size_t used() const { return gemms_.size() + used_; }
  void use(size_t method) { used_ = method - gemms_.size(); }
  Collective const& collective(size_t method) const { return collectives_.ways()[method - gemms_.size()]; }

  GemmProblem const& problem() const { return subject_.p; }
  Subject& subject() { return subject_; }
  World& world() const { return world_; }
  Lockstep* ranks() const { return ranks_.get(); }           ///< null in a mirror
  Subject::Fused const& fused() const { return fused_[0]; }  ///< the plan's own choice

 private:
  void add_fused(Plan const& plan, std::string const& variant);
  void try_fused(std::string const& line);
  void choose_baselines(CublasLt& cublas, std::mt19937& random);
  void add(Label label, std::string name, std::function<void()> run);
  void add_alone();
  void add_kernel_alone();
  void add_rows();
  void multiply(void* out) const { gemms_[0].multiply(subject_.x_all.data(), subject_.weight(), out); }
  void run_none(size_t way);
  double error_of_none(size_t way);
  void run_chunked();
  double error_of_chunked();
  double error_of_chunked_in_mirror();
  /// What a method left, as real ranks see it: run once with poisoned outputs.
  double error_of_run(std::function<void()> const& run, void const* result, int64_t bytes);
  void poison_gathered(void const* rows);
  void keep_largest_errors();

  OverlapSuite const& options_;
  Stream const stream_;
  std::unique_ptr<World> mirror_;  // or the suite's real ranks
  World& world_;
  std::unique_ptr<Lockstep> ranks_;
  Subject subject_;
  Collectives collectives_;
  std::vector<Subject::Fused> fused_;
  std::vector<double> errors_;  // of each
  std::vector<CublasLt::Proposal> gemms_;
  size_t used_ = 0;  // the collective of `none`
  std::unique_ptr<Chunked> chunked_;
  std::unique_ptr<GemmBuffers> alone_;
  CopyStream beside_;
};

}  // namespace flux::bench
