#include "bench/gemm/lockstep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "bench/gemm/cuda.h"
#include "bench/slowest.h"

namespace flux::bench {

Lockstep::Lockstep(World& world) : world_(world), meeting_(world.team(), "meeting", 1, 16, parse_plan("buffers=1")) {}

void Lockstep::meet(Stream stream) { meeting_.finish(meeting_.begin("", stream), {}, stream); }

void Lockstep::await(CUevent_st* event) {
  using Clock = std::chrono::steady_clock;
  double const limit = world_.team().options().limit_seconds;
  auto const end = Clock::now() + std::chrono::duration<double>(limit);
  for (;;) {
    cudaError_t const state = cudaEventQuery(event);
    if (state == cudaSuccess) return;
    if (state != cudaErrorNotReady) must(state);
    if (Clock::now() > end) {
      world_.team().fail();  // the others wait for this rank no longer, and NCCL is ended
      throw Error(ErrorKind::kTimeout,
                  fmt::format("rank {}: a sample did not end within {:g} s", world_.rank(), limit));
    }
    std::this_thread::yield();
  }
}

uint32_t Lockstep::first(uint32_t mine) {
  return static_cast<uint32_t>(std::stoul(world_.all_gather(std::to_string(mine))[0]));
}

size_t Lockstep::least(size_t mine) {
  for (std::string const& one : world_.all_gather(std::to_string(mine))) mine = std::min<size_t>(mine, std::stoul(one));
  return mine;
}

void Lockstep::keep_slowest(std::vector<GpuMethod>& methods) {
  std::vector<std::vector<double>> all;
  for (GpuMethod const& method : methods) all.push_back(method.us);
  all = slowest(world_, all);
  for (size_t i = 0; i < methods.size(); ++i) methods[i].us = std::move(all[i]);
}

}  // namespace flux::bench
