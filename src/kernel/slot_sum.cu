#include "kernel/slot_sum.h"

#include "kernel/row_team.h"

namespace flux {
namespace {

// Eight elements, one 16-byte access.
template <class T>
struct alignas(16) Eight {
  T x[8];
};

template <class T>
__device__ Eight<T> load(void const* data, int64_t index) {
  return *reinterpret_cast<Eight<T> const*>(static_cast<T const*>(data) + index);
}
template <class T>
__device__ void add(float (&sum)[8], Eight<T> const& part) {
#pragma unroll
  for (int i = 0; i < 8; ++i) sum[i] += static_cast<float>(part.x[i]);
}

/// Writes one row of y, and returns this thread's part of its sum of squares.
template <class T>
__device__ float sum_row(SlotSum const& s, int64_t row, bool whole, RowTeam const& team) {
  constexpr int kTogether = 4;  // loads of slots on their way at a time
  int64_t const n = s.out.columns;
  float squares = 0;
  for (int64_t column = 8 * team.first(); column < n; column += 8 * team.step()) {
    float sum[8] = {};
    for (int first = 0; first < s.parts; first += kTogether) {
      Eight<T> slots[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        int const part = first + i;
        bool const own = part == s.own_part;
        if (part < s.parts)
          slots[i] = load<T>(own ? s.own : s.slots, ((own ? 0 : part * s.slot_rows) + row) * n + column);
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i)
        if (first + i < s.parts) add(sum, slots[i]);
    }
    if (s.bias) add(sum, load<T>(s.bias.data, column));
    if (s.residual) add(sum, load<T>(s.residual.data, row * s.residual.stride + column));
    Eight<T> out;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      out.x[i] = static_cast<T>(whole ? sum[i] : __int_as_float(0x7fffffff));
      squares += sum[i] * sum[i];
    }
    *reinterpret_cast<Eight<T>*>(static_cast<T*>(s.out.data) + row * s.out.stride + column) = out;
  }
  return squares;
}

/// From the row of y that these same threads have just written.
template <class T>
__device__ void norm_row(SlotSum const& s, int64_t row, float scale, RowTeam const& team) {
  for (int64_t column = 8 * team.first(); column < s.out.columns; column += 8 * team.step()) {
    float y[8] = {}, gamma[8] = {};
    add(y, load<T>(s.out.data, row * s.out.stride + column));
    add(gamma, load<T>(s.norm_weight.data, column));
    Eight<T> normed;
#pragma unroll
    for (int i = 0; i < 8; ++i) normed.x[i] = static_cast<T>(y[i] * scale * gamma[i]);
    *reinterpret_cast<Eight<T>*>(static_cast<T*>(s.normed.data) + row * s.normed.stride + column) = normed;
  }
}

// Four blocks a processor: without that word ptxas aims at 32 registers for sm_80, and spills.
template <class T>
__global__ void __launch_bounds__(kTeamThreads, 4) add_up(__grid_constant__ SlotSum const s, int sharing) {
  RowTeam const team(sharing);
  int const bands = min(s.bands.count(s.owner), s.end_band);
  // Blocks share a band, so that a few late words hold back few of them: a team takes every so manieth row.
  for (int b = s.first_band; b < bands; ++b) {
    Place const band = s.bands.place(s.owner, b);
    bool ok = !s.watch.abort.at(s.watch.rank) || !aborted(s.watch);
    if (int const source = threadIdx.x; s.words && source < s.sources)
      ok = await(s.words + s.bands.index(source, b), s.goal, s.watch, Awaited::kPartial, s.whose[source], band.row);
    bool const whole = __syncthreads_and(ok);  // and what those threads acquired is visible to the block
    for (int64_t row = band.row + team.index; row < band.row + band.rows; row += team.count) {
      float const squares = sum_row<T>(s, row, whole, team);
      if (!s.normed) continue;
      norm_row<T>(s, row, rsqrtf(add_over_team(squares, team) / s.out.columns + s.norm_epsilon), team);
    }
  }
}

}  // namespace

void prepare_slot_sum() {
  cudaFuncAttributes attributes;
  check_cuda(cudaFuncGetAttributes(&attributes, add_up<__nv_bfloat16>), "loading the slot sum");
  check_cuda(cudaFuncGetAttributes(&attributes, add_up<__half>), "loading the slot sum");
}

void sum_slots(SlotSum const& s, int blocks, CUstream_st* stream) {
  launch_row_teams(add_up<__nv_bfloat16>, add_up<__half>, s, s.out.columns / 8, s.out.rows, blocks, stream);
}

}  // namespace flux
