#pragma once
// What one operator shares among its ranks: buffers of words and data, used in turn, and what says when a buffer may be
// written again: credits, and the words by which every rank hears of every other in every call. Protocol:
// docs/protocol.md.
#include <memory>
#include <string_view>

#include "flux/plan.h"
#include "world/team.h"

namespace flux {

/// One call as every part of it sees it.
struct Call {
  int buffer = 0;
  Word digest = 0;  // the value of this call's words: never 0
  Watch watch;
};

class Channel {
 public:
  static int64_t bytes(int64_t words, int64_t data_bytes, Plan const& plan);

  Symmetric<Word> words(Call const& call) const { return word_memory_->view<Word>(head(call) + kHeadBytes); }
  Symmetric<std::byte> data(Call const& call) const { return data_memory_->view<std::byte>(call.buffer * data_bytes_); }
  /// At each rank, the credits that its peers gave to write this buffer of theirs.
  Symmetric<Word> credits(Call const& call) const { return word_memory_->view<Word>(head(call)); }
  /// At each rank, the digests of the calls that its peers have begun on this buffer.
  Symmetric<Word> begun(Call const& call) const {
    return word_memory_->view<Word>(head(call) + kMaxRanks * int64_t{sizeof(Word)});
  }
  Team& team() { return team_; }

 protected:
  /// Collective. Per buffer and rank: `words` words and `data_bytes` bytes, zeroed. `description` names operator and
  /// shape; every rank must give the same, and the same plan.
  Channel(Team& team, std::string_view description, int64_t words, int64_t data_bytes, Plan const& plan);
  /// The next call: its buffer and digest. `sizes` is what distinguishes it from others of the same operator.
  Call next(std::string_view sizes);

  int buffers() const { return buffers_; }
  int64_t word_count() const { return words_; }

 private:
  // A buffer begins with a credit and a "has begun" word for each peer.
  static constexpr int64_t kHeadBytes = 2 * kMaxRanks * sizeof(Word);
  int64_t head(Call const& call) const { return call.buffer * word_bytes_; }

  Team& team_;
  uint64_t description_;
  int64_t words_, word_bytes_, data_bytes_;  // of a buffer
  int lane_, buffers_;
  int64_t calls_ = 0;
  std::shared_ptr<SymmetricMemory> word_memory_, data_memory_;
};

/// Calls of the host engine: this thread waits.
class HostChannel final : public Channel {
 public:
  HostChannel(Team& team, std::string_view description, int64_t words, int64_t data_bytes, Plan const& plan);

  /// Starts a call: waits until nobody reads or writes this buffer's last use any more, tells every peer of the call.
  /// Throws as Team::check.
  Call begin(std::string_view sizes);
  /// Ends it. All words of the call have been seen and all its data read here. Waits until every peer has begun it,
  /// clears the words, then gives every peer the credit to write this buffer again.
  void finish(Call const& call);

  CopyEngine& copies() { return copies_; }

 private:
  CopyEngine copies_;
};

}  // namespace flux
