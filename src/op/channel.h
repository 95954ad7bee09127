#pragma once
// What one operator shares among its ranks: words of its own, and buffers that are its own or those of a workspace.
// Protocol: docs/protocol.md.
#include <memory>
#include <string_view>

#include "flux/plan.h"
#include "op/buffers.h"
#include "world/rail.h"
#include "world/team.h"

namespace flux {

/// One call as every part of it sees it.
struct Call {
  int buffer = 0;
  Word digest = 0;  // the value of this call's words: never 0
  Watch watch;
};

/// What stands for a call in words: never 0.
Word digest_of(std::string_view description, uint64_t seed = 0);

class Channel {
 public:
  static int64_t bytes(int64_t words, int64_t data_bytes, Plan const& plan);

  Symmetric<Word> words(Call const& call) const { return word_memory_->view<Word>(call.buffer * word_bytes_); }
  Symmetric<std::byte> data(Call const& call) const { return buffers_->data(call.buffer); }
  Symmetric<Word> credits(Call const& call) const { return buffers_->credits(call.buffer); }
  Symmetric<Word> begun(Call const& call) const { return buffers_->begun(call.buffer); }
  Team& team() { return team_; }
  Buffers& buffers() { return *buffers_; }

 protected:
  /// Collective. Per buffer and rank: `words` words and `data_bytes` bytes, zeroed, and `extra` of a GPU; those of
  /// `shared`, or its own. `description` names operator and shape; every rank must give the same, and the same plan.
  Channel(Team& team, std::string_view description, int64_t words, int64_t data_bytes, Plan const& plan,
          std::shared_ptr<Buffers> shared, Buffers::Extra const& extra = {});
  /// The next call: its buffer and digest. `sizes` is what distinguishes it from others of the same operator.
  Call next(std::string_view sizes);

  int64_t word_count() const { return words_; }

 private:
  Team& team_;
  uint64_t description_;
  int64_t words_, word_bytes_;  // of a buffer
  int lane_;
  std::shared_ptr<Buffers> buffers_;
  std::shared_ptr<SymmetricMemory> word_memory_;
};

/// What a channel takes, and beside it memory of the operator's own.
MemoryNeed memory_need(int64_t words, int64_t data_bytes, Plan const& plan, Buffers::Extra const& extra = {},
                       int64_t own_bytes = 0);

/// Calls of the host engine: this thread waits.
class HostChannel final : public Channel {
 public:
  HostChannel(Team& team, std::string_view description, int64_t words, int64_t data_bytes, Plan const& plan,
              std::shared_ptr<Buffers> shared = nullptr);

  /// Starts a call: waits until nobody reads or writes this buffer's last use any more, tells every peer of the call.
  /// Throws as Team::check.
  Call begin(std::string_view sizes);
  /// Ends it. All words of the call have been seen and all its data read here. Waits until every peer has begun it,
  /// clears the words, then gives every peer the credit to write this buffer again.
  void finish(Call const& call);

  CopyEngine& copies() { return copies_; }
  Rail* rail() { return rail_.get(); }  ///< between nodes, if there are several
  /// Returns when all that was enqueued to either is done or given up.
  void drain();

 private:
  CopyEngine copies_;
  std::unique_ptr<Rail> rail_;
};

/// Whatever way a call ends, its copies are over before what they refer to goes away.
class DrainAtEnd {
 public:
  explicit DrainAtEnd(HostChannel& channel) : channel_(channel) {}
  ~DrainAtEnd() { channel_.drain(); }

 private:
  HostChannel& channel_;
};

}  // namespace flux
