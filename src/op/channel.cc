#include "op/channel.h"

#include <fmt/format.h>

#include <algorithm>

namespace flux {
namespace {

constexpr int64_t kLine = 128;  // bytes: words and data never share a cache line

int64_t padded(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// FNV-1a: the same on every rank, which std::hash does not promise.
uint64_t hash(std::string_view text, uint64_t seed = 14695981039346656037ull) {
  for (unsigned char c : text) seed = (seed ^ c) * 1099511628211ull;
  return seed;
}

}  // namespace

int64_t Channel::bytes(int64_t words, int64_t data_bytes, Plan const& plan) {
  return plan.buffers * (padded(kHeadBytes + words * int64_t{sizeof(Word)}) + padded(std::max<int64_t>(data_bytes, 1)));
}

Channel::Channel(Team& team, std::string_view description, int64_t words, int64_t data_bytes, Plan const& plan)
    : team_(team),
      description_(hash(fmt::format("{} {} #{}", description, to_string(plan), team.next_operator()))),
      words_(words),
      word_bytes_(padded(kHeadBytes + (planted(Bug::kFlagArrayTooSmall) ? words / 4 : words) * int64_t{sizeof(Word)})),
      data_bytes_(padded(std::max<int64_t>(data_bytes, 1))),
      lane_(plan.lane),
      buffers_(plan.buffers) {
  auto const all = team.all_gather(fmt::format("{}", description_));
  for (int r = 0; r < team.size(); ++r)
    if (all[r] != all[team.rank()])
      throw Error(
          ErrorKind::kInvalid,
          fmt::format("rank {} and rank {} construct different operators ({} here); every rank must construct the same "
                      "ones in the same order",
                      team.rank(), r, fmt::format("{} {}", description, to_string(plan))));
  word_memory_ = team.allocate(buffers_ * word_bytes_, Use::kWords);
  data_memory_ = team.allocate(buffers_ * data_bytes_, Use::kData);
}

Call Channel::next(std::string_view sizes) {
  Call call;
  call.buffer = static_cast<int>(calls_++ % buffers_);
  uint64_t const digest = hash(sizes, description_) + call.buffer;
  call.digest = static_cast<Word>(digest ^ digest >> 32);
  if (call.digest == 0) call.digest = 1;
  call.watch = team_.begin_call(lane_, call.digest);
  return call;
}

HostChannel::HostChannel(Team& team, std::string_view description, int64_t words, int64_t data_bytes, Plan const& plan)
    : Channel(team, description, words, data_bytes, plan), copies_(team.link_clock()) {
  for (int b = 0; b < buffers(); ++b)
    for (int p = 0; p < team.size(); ++p) store_release(credits({b, 0, {}}).at(team.rank()) + p, kGranted);
  team.all_gather({});  // no rank calls before all credits stand
}

Call HostChannel::begin(std::string_view sizes) {
  Call const call = next(sizes);
  int const rank = team().rank(), ranks = team().size();
  for (int p = 0; p < ranks && !planted(Bug::kNoCredit); ++p) {
    if (p == rank) continue;
    Word* const word = credits(call).at(rank) + p;
    if (!await(word, kGranted, call.watch, Awaited::kCredit, p, 0)) team().check();
    store_release(word, 0);
  }
  // p grants a credit anew only after it has heard of this call, so after the old one is cleared: also where it owns
  // no rows and nothing else of the call reaches it.
  for (int p = 0; p < ranks; ++p)
    if (p != rank) store_release(begun(call).at(p) + rank, call.digest);
  return call;
}

void HostChannel::finish(Call const& call) {
  copies_.drain();  // our copy engine reads this buffer too
  int const rank = team().rank(), ranks = team().size();
  Word* const begun = this->begun(call).at(rank);
  for (int p = 0; p < ranks; ++p)
    if (p != rank && !await(begun + p, call.digest, call.watch, Awaited::kCall, p, 0)) break;
  team().check();  // the abort word is read after the last input: no result of a broken exchange leaves
  for (int p = 0; p < ranks; ++p) store_release(begun + p, 0);
  Word* const words = this->words(call).at(rank);
  for (int64_t i = 0; i < word_count() && !planted(Bug::kStaleDigest); ++i) store_release(words + i, 0);
  for (int p = 0; p < ranks; ++p)
    if (p != rank) store_release(credits(call).at(p) + rank, kGranted);
}

}  // namespace flux
