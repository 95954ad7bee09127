#pragma once
// The way of partial sums on GPUs: the GEMM sends finished tiles to their owners' slots, a second kernel adds the slots
// up as they fill. For GEMM+RS, and for the first half of GEMM+AR.
#include "kernel/slot_sum.h"
#include "op/gpu/channel.h"
#include "op/gpu/recording.h"
#include "op/gpu/tiles.h"
#include "op/partial_sums.h"

namespace flux {

class GpuPartialSums {
 public:
  using Way = PartialSums::Way;
  /// `k`: over all ranks, 0: not known. `scratch`: so many bytes, or its own.
  GpuPartialSums(Team& team, int64_t max_m, int64_t n, int64_t k, DType dtype, Plan const& plan, Way way,
                 std::shared_ptr<std::byte> scratch = nullptr);
  /// Partials staged here; and behind them, through host memory, slots of fetched ones, or over nodes the sums that go.
  static int64_t scratch_bytes(Team& team, int64_t max_m, int64_t n, DType dtype, Plan const& plan, Way way);

  /// Multiplies x · weight, sends the tiles on their way, and adds up the rows that are summed here:
  /// out + bias + residual, and normed. Everything is enqueued. `tiles`: what tiles() gave for m.
  void run(GpuChannel& channel, Call const& call, Tiles const& tiles, int64_t m, Tensor const& x, Tensor const& weight,
           WeightLayout layout, Tensor const& out, SumEpilogue const& epilogue, Stream stream);

  /// Keeps the times of the next calls; null: none.
  void record(Timeline* timeline) {
    recording_ = timeline ? std::make_unique<GpuRecording>(*timeline, team_, SpanKind::kSum) : nullptr;
  }
  GpuRecording* recording() const { return recording_.get(); }
  /// Before a call that is recorded begins.
  void reserve(Tiles const& tiles, int64_t m, Tensor const& weight, WeightLayout layout);

  /// The second half alone, as run() does it where the plan is not fused: partial sums of all rows lie in staging().
  void scatter(GpuChannel& channel, Call const& call, int64_t m, Tensor const& out, SumEpilogue const& epilogue,
               Stream stream);
  std::byte* staging() const {
    return staging_.get();
  }  ///< [max_m, n]; of plans that are not fused, and of route=stage

  /// Enqueues y = rows + bias + residual, and normed, for rows that are whole already.
  void finish_rows(Call const& call, Tensor const& rows, Tensor const& out, SumEpilogue const& epilogue,
                   Stream stream) const;

  /// The same on every rank. Throws Error{kUnsupported} for a tile that is not in the table: before a call begins.
  Tiles tiles(int64_t m, WeightLayout layout) const;
  /// What becomes of the sums.
  static SummedRows summed(Gpu const& gpu, Tensor const& out, SumEpilogue const& epilogue);
  /// Checks, on every rank before a call begins, what the GPU can take.
  static void require_operands(Tensor const& x, Tensor const& weight, Tensor const& out, SumEpilogue const& epilogue);

 private:
  struct Traffic : Departures {
    int copying = 0;  // blocks that carry partials; 0: the copy engine does
    int beside = 0;   // blocks beside the GEMM and the sums, which wait for them
  };
  Traffic traffic(GpuChannel& channel, Call const& call, int64_t m, Tiles const* fused_tiles) const;
  void send_staged(GpuChannel& channel, Call const& call, Traffic const& traffic, Stream stream) const;
  static void send_in_lock_step(GpuChannel& channel, Traffic const& traffic, std::span<Transfer const> ours,
                                std::span<Transfer const> theirs);
  /// Sums of other nodes' rows are made here and go along the rails; theirs of ours come.
  void exchange_sums(GpuChannel& channel, Call const& call, Traffic const& traffic) const;
  SlotSum node_sum(Traffic const& traffic, int owner, Watch const& watch) const;
  void add_up(GpuChannel& channel, Call const& call, Traffic const& traffic, Tensor const& out,
              SumEpilogue const& epilogue, Stream stream) const;
  std::vector<Transfer> others(Traffic const& traffic) const;
  /// Through host memory: what the others sent, from where it lies.
  static std::vector<Transfer> fetches(GpuChannel& channel, Call const& call, Traffic const& traffic);
  static std::vector<Transfer> relays(Traffic const& traffic, int rank);
  int sum_blocks(int beside) const;
  /// Blocks that carry the partials of a call of m rows.
  int copying(int64_t m) const;
  /// Rows of a call of m rows whose partials go together.
  int64_t at_once(int64_t m) const;
  /// Whether partials are stored here first and carried to other ranks by something else.
  bool staged() const { return staged(way_); }
  static bool staged(Way way) { return way == Way::kStage || way == Way::kRing; }
  static int64_t staging_bytes(int64_t max_m, int64_t n, DType dtype, Way way) {
    return staged(way) ? Buffers::padded(max_m * n * size_of(result_of(dtype))) : 0;
  }

  Team& team_;
  int64_t n_, k_;
  DType dtype_, slot_dtype_;  // of the operands, of their partial sums
  Plan plan_;
  Way way_;
  std::shared_ptr<std::byte> counts_;    // tiles stored of each band of each owner
  std::shared_ptr<std::byte> staging_;   // staged: our partials of all rows
  std::shared_ptr<std::byte> departed_;  // staged: words that the copies wait for
  std::byte* behind_staging_ = nullptr;  // slots of fetched partials, or sums that go to other nodes
  std::unique_ptr<GpuRecording> recording_;
};

}  // namespace flux
