#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flux {

/// One method on one problem. Sizes are global, before tensor
/// parallelism; times are microseconds of the whole operator, the slowest rank's. What has no value is null in the
/// file.
struct ResultRow {
  std::string workload, op;  ///< op: gemm, ag_gemm, gemm_rs, gemm_ar, layer, model
  int64_t m = 0, n = 0, k = 0, tp = 1;
  std::string dtype, weight = "[out,in]", epilogue = "none";
  std::string world;  ///< single, threads, processes, devices, shared_gpu, mirror
  int64_t nodes = 1;
  std::string link;                     ///< nvlink, pcie, device, host
  bool duplex = false;                  ///< both directions were busy
  std::optional<std::string> incoming;  ///< partner or replay, in mirror
  std::string method, variant;          ///< variant: empty for the plan's own choice
  std::string timing = "eager", cache = "warm";
  std::optional<std::string> phase;  ///< train, prefill, decode
  double total_us = 0, p10_us = 0, p90_us = 0;
  int64_t samples = 0;
  std::optional<double> p50_us, p99_us, read_gbps;
  std::optional<double> gemm_us;
  std::optional<std::string> gemm_by;
  std::optional<double> comm_us, link_gbps;
  std::optional<std::string> comm_by;  ///< which way of the exchange took comm_us
  std::optional<double> ect_us, efficiency, floor_us, peak_floor_us;
  /// Where total - floor goes: see report/budget.h.
  std::optional<double> budget_gemm_us, budget_fusion_us, budget_traffic_us;
  std::optional<double> budget_head_us, budget_tail_us, budget_sum_us;
  std::optional<std::string> plan;
  std::optional<double> error;  ///< relative to fp64, of this very run

  bool operator==(ResultRow const&) const = default;
};

/// Where it was measured; the caller fills in what it knows.
struct MachineFacts {
  std::optional<std::string> gpu;
  int64_t gpus = 0;
  std::optional<std::string> cpu;
  std::optional<int64_t> cores;
  std::optional<std::string> link, driver, cuda, nccl, torch;

  bool operator==(MachineFacts const&) const = default;
};

/// What the GPU says of itself at some moment; what it does not say has no value.
struct Sensors {
  std::optional<double> clock_mhz, memory_clock_mhz, power_w, temperature_c;

  bool operator==(Sensors const&) const = default;
};

/// A result file of schema 1: what a claim rests on.
struct ResultFile {
  static constexpr int kSchema = 1;
  std::string suite;    ///< "core", "decode", ...
  std::string date;     ///< UTC, "2026-12-01T10:00:00Z": see utc_now()
  std::string commit;   ///< see commit() in flux/version.h
  std::string command;  ///< the whole command line
  MachineFacts machine;
  std::optional<Sensors> before, after;  ///< the measuring; the file leaves out what is not known
  std::vector<ResultRow> rows;

  bool operator==(ResultFile const&) const = default;
};

std::string utc_now();

/// Writes `<date>-<machine>-<suite>.json` ("2026-12-01-h200x2-core.json") into `folder`, whole or not at all, and
/// returns its path. An older file is never replaced: a second run of a day gets `-2`. Throws Error{kInvalid} for no
/// rows, NaN or infinity, an empty or odd suite or date.
std::filesystem::path write_result(std::filesystem::path const& folder, ResultFile const& file);
/// That path, before anything is written.
std::filesystem::path free_result_path(std::filesystem::path const& folder, ResultFile const& file);

/// Throws Error{kInvalid}, one sentence: not JSON, truncated, another schema, a field missing, unknown or of the wrong
/// type, no rows.
ResultFile read_result(std::filesystem::path const& path);

/// The text of the file, and back; `name` stands for it in messages.
std::string to_json(ResultFile const& file);
ResultFile parse_result(std::string_view text, std::string_view name);

/// For the terminal: the rows of each problem under its heading, times in microseconds.
std::string to_table(ResultFile const& file);

}  // namespace flux
