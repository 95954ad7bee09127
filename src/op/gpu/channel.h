#pragma once
// Calls on GPUs: nobody waits on the host. A kernel begins the call, a kernel ends it; everything between is in the
// caller's stream or in a stream of copies forked from it.
#include "kernel/call.h"
#include "kernel/copy_rows.h"
#include "op/channel.h"
#include "world/cuda/calls_under_way.h"
#include "world/cuda/copy_stream.h"
#include "world/cuda/gpu_rail.h"

namespace flux {

class GpuChannel final : public Channel {
 public:
  GpuChannel(Team& team, std::string_view description, int64_t words, int64_t data_bytes, Plan const& plan,
             std::shared_ptr<Buffers> shared = nullptr, Buffers::Extra const& extra = {});

  /// Throws as Team::check, and Error{kInvalid} for a stream that ranks of one GPU would share.
  Call begin(std::string_view sizes, Stream stream);
  /// Of a call by packets, which uses neither words nor data of the channel: nothing is enqueued.
  Call enter(std::string_view sizes, Stream stream);
  void leave(Stream stream) { buffers().under_way->leave(stream); }
  CallWords words_of(Call const& call) const { return {credits(call), begun(call), call.digest, call.watch}; }
  /// All copies of the call have been joined.
  void finish(Call const& call, Inputs const& inputs, Stream stream);

  /// Waits until its calls are over: before anything goes away that they use.
  void drain() { buffers().under_way->drain(); }

  CopyStream& copies() { return copies_; }
  /// Blocks of the GPU perform `ours` beside the caller's stream, as copies() does, and with as many more, in a mirror,
  /// `theirs`: what the ranks that are left out send. A transfer that adds is of `dtype`.
  void copy_by_blocks(std::span<Transfer const> ours, std::span<Transfer const> theirs, int blocks, DType dtype,
                      Watch const& watch);

  /// Keeps the times of the copies that go and, in a mirror, through host memory or along a rail, of those that come;
  /// null: no more.
  void record(std::vector<TimedCopy>* out, std::vector<TimedCopy>* in) {
    copies_.record(out);
    if (replay_) replay_->record(in);
    if (fetches_) fetches_->record(in);
    if (rail_) rail_->record(in);
  }

  /// Where ranks meet in host memory: what is sent to this rank, and its words, lie in the channel's data and words,
  /// and kernels of this rank would read them across the bus. So copies fetch the data, each behind its word, and set
  /// the word of the same index here, in the GPU's memory.
  bool through_host() const { return fetches_ != nullptr; }
  /// What the words here take.
  static int64_t own_bytes(Team& team, int64_t words) {
    return team.gpu()->through_host() ? words * int64_t{sizeof(Word)} : 0;
  }
  Word* fetched() const { return reinterpret_cast<Word*>(fetched_.get()); }
  /// Of the call that has begun, beside the caller's stream from there on, until `finish`.
  void fetch(std::span<Transfer const> transfers) { fetches_->enqueue(transfers); }

  /// Between nodes, if there are several. What it carries in a call is forked and joined by who asks for it.
  GpuRail* rail() const { return rail_.get(); }

  bool mirrored() const { return replay_ != nullptr; }
  /// In a mirror: what the ranks that are left out send in the call that has begun, beside the caller's stream from
  /// there on, until `finish`. `more` as in CopyStream::enqueue.
  void replay(std::span<Transfer const> transfers, bool more = false);
  /// What is replayed from now on comes after the waits of the copies enqueued so far; where none of them waits, after
  /// the copies.
  void replay_after_waits() { replay_->fork(copies_.waits()); }

 private:
  CopyStream copies_;
  std::shared_ptr<std::byte> counts_;    // of copies by blocks: one list of ours, one of theirs
  std::unique_ptr<CopyStream> replay_;   // of a mirror
  std::unique_ptr<CopyStream> fetches_;  // through host memory
  std::shared_ptr<std::byte> fetched_;
  std::unique_ptr<GpuRail> rail_;
};

}  // namespace flux
