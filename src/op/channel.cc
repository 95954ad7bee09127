#include "op/channel.h"

#include <fmt/format.h>

#include <algorithm>

namespace flux {
namespace {

// FNV-1a: the same on every rank, which std::hash does not promise.
uint64_t hash(std::string_view text, uint64_t seed = 14695981039346656037ull) {
  for (unsigned char c : text) seed = (seed ^ c) * 1099511628211ull;
  return seed;
}

}  // namespace

Word digest_of(std::string_view description, uint64_t seed) {
  uint64_t const digest = hash(description, seed ^ 14695981039346656037ull);
  auto const word = static_cast<Word>(digest ^ digest >> 32);
  return word == 0 ? 1 : word;
}

int64_t Channel::bytes(int64_t words, int64_t data_bytes, Plan const& plan) {
  return plan.buffers * (Buffers::padded(words * int64_t{sizeof(Word)}) + Buffers::bytes(data_bytes));
}

MemoryNeed memory_need(int64_t words, int64_t data_bytes, Plan const& plan, Buffers::Extra const& extra,
                       int64_t own_bytes) {
  return {plan.buffers, Buffers::bytes(data_bytes), extra.scratch_bytes,
          plan.buffers * Buffers::padded(words * int64_t{sizeof(Word)}) + own_bytes, extra.packet_bytes};
}

Channel::Channel(Team& team, std::string_view description, int64_t words, int64_t data_bytes, Plan const& plan,
                 std::shared_ptr<Buffers> shared, Buffers::Extra const& extra)
    : team_(team),
      description_(hash(fmt::format("{} {} #{} @{}", description, to_string(plan), team.next_operator(),
                                    shared ? shared->number() + 1 : 0))),
      words_(words),
      word_bytes_(Buffers::padded((planted(Bug::kFlagArrayTooSmall) ? words / 4 : words) * int64_t{sizeof(Word)})),
      lane_(plan.lane),
      buffers_(std::move(shared)) {
  auto const all = team.all_gather(fmt::format("{}", description_));
  for (int r = 0; r < team.size(); ++r)
    if (all[r] != all[team.rank()])
      throw Error(
          ErrorKind::kInvalid,
          fmt::format("rank {} and rank {} construct different operators ({} here); every rank must construct the same "
                      "ones in the same order",
                      team.rank(), r, fmt::format("{} {}", description, to_string(plan))));
  if (buffers_) {
    if (&buffers_->team() != &team)
      throw Error(ErrorKind::kInvalid, "the workspace is another world's; make one in the operator's world");
    buffers_->admit(plan, data_bytes, extra);
  } else {
    buffers_ = std::make_shared<Buffers>(team, plan.buffers, data_bytes, extra, false);
  }
  word_memory_ = team.allocate(plan.buffers * word_bytes_, Use::kWords);
}

Call Channel::next(std::string_view sizes) {
  Call call;
  call.buffer = buffers_->next();
  call.digest = digest_of(sizes, description_ + static_cast<uint64_t>(call.buffer));
  call.watch = team_.begin_call(lane_, call.digest);
  return call;
}

HostChannel::HostChannel(Team& team, std::string_view description, int64_t words, int64_t data_bytes, Plan const& plan,
                         std::shared_ptr<Buffers> shared)
    : Channel(team, description, words, data_bytes, plan, std::move(shared)), copies_(team.link_clock()) {
  if (team.nodes().count > 1) rail_ = std::make_unique<Rail>(team, team.next_operator());
}

void HostChannel::drain() {
  copies_.drain();
  if (rail_) rail_->drain();
}

Call HostChannel::begin(std::string_view sizes) {
  if (buffers().busy.exchange(true)) {
    team().check();
    throw Error(ErrorKind::kInvalid,
                "two operators that share a workspace are called at the same time; give each thread's operators a "
                "workspace of their own");
  }
  Call const call = next(sizes);
  int const rank = team().rank();
  auto const neighbours = team().neighbours();  // what comes from other nodes is written by ranks of this one
  for (int p : neighbours) {
    if (p == rank || planted(Bug::kNoCredit)) continue;
    Word* const word = credits(call).at(rank) + p;
    if (!await(word, kGranted, call.watch, Awaited::kCredit, p, 0)) team().check();
    store_release(word, 0);
  }
  // p grants a credit anew only after it has heard of this call, so after the old one is cleared: also where it owns
  // no rows and nothing else of the call reaches it.
  for (int p : neighbours)
    if (p != rank) store_release(begun(call).at(p) + rank, call.digest);
  return call;
}

void HostChannel::finish(Call const& call) {
  drain();  // our copy engine reads this buffer too
  int const rank = team().rank();
  auto const neighbours = team().neighbours();
  Word* const begun = this->begun(call).at(rank);
  for (int p : neighbours)
    if (p != rank && !await(begun + p, call.digest, call.watch, Awaited::kCall, p, 0)) break;
  team().check();  // the abort word is read after the last input: no result of a broken exchange leaves
  for (int p : neighbours) store_release(begun + p, 0);
  Word* const words = this->words(call).at(rank);
  for (int64_t i = 0; i < word_count() && !planted(Bug::kStaleDigest); ++i) store_release(words + i, 0);
  for (int p : neighbours)
    if (p != rank) store_release(credits(call).at(p) + rank, kGranted);
  buffers().busy = false;
}

}  // namespace flux
