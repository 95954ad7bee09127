#include "op/gpu/channel.h"

#include "op/checks.h"
#include "plan/pieces.h"

namespace flux {

GpuChannel::GpuChannel(Team& team, std::string_view description, int64_t words, int64_t data_bytes, Plan const& plan,
                       std::shared_ptr<Buffers> shared, Buffers::Extra const& extra)
    : Channel(team, description, words, data_bytes, plan, std::move(shared), extra), copies_(!team.gpu()->shared()) {
  prepare_calls(), prepare_copies_by_blocks();
  counts_ = team.gpu()->allocate(2 * kCopyCounts * sizeof(Word));
  if (!buffers().under_way) buffers().under_way = std::make_shared<CallsUnderWay>(team.options().limit_seconds);
  if (team.gpu()->mirrored()) replay_ = std::make_unique<CopyStream>(true);
  if (team.gpu()->spans_nodes()) rail_ = std::make_unique<GpuRail>(team, plan.lane, kCommunicatorBlocks);
  if (!team.gpu()->through_host()) return;
  fetches_ = std::make_unique<CopyStream>(true);
  fetched_ = team.gpu()->allocate(own_bytes(team, words));
}

Call GpuChannel::enter(std::string_view sizes, Stream stream) {
  require(stream != nullptr || !team().gpu()->shared(),
          "ranks that share a GPU need a stream each; the default stream is one for all of them");
  team().gpu()->activate();
  buffers().under_way->enter(stream, buffers().shared());
  return next(sizes);
}

Call GpuChannel::begin(std::string_view sizes, Stream stream) {
  Call const call = enter(sizes, stream);
  enqueue_begin(words_of(call), stream);
  if (through_host()) fetches_->fork(stream), fetches_->wait_by_kernels(call.watch);
  if (!mirrored()) return call;
  // The ranks that are left out begin with us, and will have ended when we come to this buffer again.
  int const rank = team().rank();
  replay_->fork(stream);
  enqueue_words(begun(call).at(rank), call.digest, kMaxRanks, replay_->stream());
  enqueue_words(credits(call).at(rank), kGranted, kMaxRanks, replay_->stream());
  return call;
}

void GpuChannel::replay(std::span<Transfer const> transfers, bool more) {
  if (!transfers.empty()) replay_->enqueue(transfers, more);
}

void GpuChannel::copy_by_blocks(std::span<Transfer const> ours, std::span<Transfer const> theirs, int blocks,
                                DType dtype, Watch const& watch) {
  Word* const counts = reinterpret_cast<Word*>(counts_.get());
  BlockCopies const lists[] = {{ours, counts}, {theirs, counts + kCopyCounts}};
  copies_.enqueue_timed(ours, [&] {
    flux::copy_by_blocks({lists, theirs.empty() ? size_t{1} : size_t{2}}, blocks, dtype, watch, copies_.stream());
  });
}

void GpuChannel::finish(Call const& call, Inputs const& inputs, Stream stream) {
  if (mirrored()) replay_->join(stream);
  if (through_host()) fetches_->join(stream);
  enqueue_finish(words_of(call), inputs, words(call).at(team().rank()), word_count(), stream);
  if (through_host()) enqueue_words(fetched(), 0, word_count(), stream);
  leave(stream);
}

}  // namespace flux
