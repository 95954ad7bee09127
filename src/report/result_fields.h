#pragma once
#include "report/result_file.h"

namespace flux {

/// Calls f("name", field) for every field, in the order of the file. The one list that writing and reading go by.
template <class Row, class F>
void each_row_field(Row& row, F&& f) {
  f("workload", row.workload), f("op", row.op);
  f("m", row.m), f("n", row.n), f("k", row.k), f("tp", row.tp);
  f("dtype", row.dtype), f("weight", row.weight), f("epilogue", row.epilogue);
  f("world", row.world), f("nodes", row.nodes);
  f("link", row.link), f("duplex", row.duplex), f("incoming", row.incoming);
  f("method", row.method), f("variant", row.variant);
  f("timing", row.timing), f("cache", row.cache), f("phase", row.phase);
  f("total_us", row.total_us), f("p10_us", row.p10_us), f("p90_us", row.p90_us), f("samples", row.samples);
  f("p50_us", row.p50_us), f("p99_us", row.p99_us), f("read_gbps", row.read_gbps);
  f("gemm_us", row.gemm_us), f("gemm_by", row.gemm_by);
  f("comm_us", row.comm_us), f("link_gbps", row.link_gbps), f("comm_by", row.comm_by);
  f("ect_us", row.ect_us), f("efficiency", row.efficiency);
  f("floor_us", row.floor_us), f("peak_floor_us", row.peak_floor_us);
  f("budget_gemm_us", row.budget_gemm_us), f("budget_fusion_us", row.budget_fusion_us);
  f("budget_traffic_us", row.budget_traffic_us), f("budget_head_us", row.budget_head_us);
  f("budget_tail_us", row.budget_tail_us), f("budget_sum_us", row.budget_sum_us);
  f("plan", row.plan), f("error", row.error);
}

template <class Machine, class F>
void each_machine_field(Machine& machine, F&& f) {
  f("gpu", machine.gpu), f("gpus", machine.gpus), f("cpu", machine.cpu), f("cores", machine.cores);
  f("link", machine.link), f("driver", machine.driver), f("cuda", machine.cuda), f("nccl", machine.nccl);
  f("torch", machine.torch);
}

template <class Sensors, class F>
void each_sensor_field(Sensors& sensors, F&& f) {
  f("clock_mhz", sensors.clock_mhz), f("memory_clock_mhz", sensors.memory_clock_mhz);
  f("power_w", sensors.power_w), f("temperature_c", sensors.temperature_c);
}

template <class File, class F>
void each_file_field(File& file, F&& f) {
  f("suite", file.suite), f("date", file.date), f("commit", file.commit), f("command", file.command);
}

}  // namespace flux
