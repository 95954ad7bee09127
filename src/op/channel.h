#pragma once
// What one operator shares among its ranks: two buffers of words and data, used in turn, and the credits that say when
// a buffer may be written again. Protocol: docs/protocol.md.
#include <memory>
#include <string_view>

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
  static constexpr int kBuffers = 2;
  static int64_t bytes(int64_t words, int64_t data_bytes);

  /// Collective. Per buffer and rank: `words` words and `data_bytes` bytes, zeroed. `description` names operator, shape
  /// and plan; every rank must give the same.
  Channel(Team& team, std::string_view description, int64_t words, int64_t data_bytes, int lane);

  /// Starts a call: tells the peers which one, waits until nobody reads or writes this buffer's last use any more.
  /// `sizes` is what distinguishes this call from others of the same operator. Throws as Team::check.
  Call begin(std::string_view sizes);
  /// Ends it. All words of the call have been set and all its data read here. Clears the words, then gives every peer
  /// the credit to write this buffer again.
  void finish(Call const& call);

  Symmetric<Word> words(Call const& call) const { return memory_->view<Word>(offset(call) + kCreditBytes); }
  Symmetric<std::byte> data(Call const& call) const { return memory_->view<std::byte>(offset(call) + data_offset_); }
  CopyEngine& copies() { return copies_; }
  Team& team() { return team_; }

 private:
  static constexpr int64_t kCreditBytes = kMaxRanks * sizeof(Word);
  int64_t offset(Call const& call) const { return call.buffer * buffer_bytes_; }
  /// At `rank`: the credit that `peer` gives to write this buffer of `peer`'s.
  Word* credit(Call const& call, int rank, int peer) const { return memory_->view<Word>(offset(call)).at(rank) + peer; }

  Team& team_;
  uint64_t description_;
  int64_t words_, data_offset_, buffer_bytes_;
  int lane_;
  int64_t calls_ = 0;
  std::shared_ptr<SymmetricMemory> memory_;
  CopyEngine copies_;
};

}  // namespace flux
