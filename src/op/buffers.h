#pragma once
// Shared memory that calls use in turn, by one operator or, as a Workspace, by several: the data, and what says when a
// buffer may be written again. Credits belong to the buffer, not to the operator: whoever used it last has ended that
// call on every rank, and cleared its own words, before anybody may begin the next. Protocol: docs/protocol.md.
#include <atomic>
#include <memory>

#include "flux/op.h"
#include "tile/packet.h"
#include "world/team.h"

namespace flux {

class CallsUnderWay;  // on GPUs: src/world/cuda/calls_under_way.h

class Buffers {
 public:
  /// Beside the buffers: of this rank alone, and in packets (src/tile/packet.h), which all ranks reach.
  struct Extra {
    int64_t scratch_bytes = 0, packet_bytes = 0;
  };
  /// Collective. `count` buffers of `data_bytes` a rank, zeroed, all credits granted; on a GPU what `extra` says.
  /// `shared`: operators come and go.
  Buffers(Team& team, int count, int64_t data_bytes, Extra const& extra, bool shared);

  /// What a buffer of `data_bytes` takes on each rank.
  static int64_t bytes(int64_t data_bytes);
  static int64_t padded(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

  /// The buffer of the next call.
  int next() { return static_cast<int>(calls_++ % count_); }
  Symmetric<std::byte> data(int buffer) const { return data_->view<std::byte>(buffer * data_bytes_); }
  /// At each rank, the credits that its peers gave to write this buffer of theirs.
  Symmetric<Word> credits(int buffer) const { return heads_->view<Word>(buffer * kHeadBytes); }
  /// At each rank, the digests of the calls that its peers have begun on this buffer.
  Symmetric<Word> begun(int buffer) const {
    return heads_->view<Word>(buffer * kHeadBytes + kMaxRanks * int64_t{sizeof(Word)});
  }
  std::shared_ptr<std::byte> const& scratch() const { return scratch_; }
  /// Packets of a half, where they lie at each rank, and this rank's two words that count their calls.
  int64_t packets_of_half() const { return extra_.packet_bytes / 2 / int64_t{sizeof(Packet)}; }
  Symmetric<Packet> packets() const { return packets_->view<Packet>(0); }
  Word* packet_calls() const { return reinterpret_cast<Word*>(packet_calls_.get()); }

  /// An operator of `plan` that needs so much may use them. Throws Error{kInvalid}.
  void admit(Plan const& plan, int64_t data_bytes, Extra const& extra);

  int count() const { return count_; }
  bool shared() const { return shared_; }
  uint32_t number() const { return number_; }
  Team& team() const { return team_; }

  std::atomic<bool> busy{false};             // host: a call is under way
  std::shared_ptr<CallsUnderWay> under_way;  // GPUs

 private:
  static constexpr int64_t kLine = 128;  // bytes: words and data never share a cache line
  // A buffer has a credit and a "has begun" word for each peer.
  static constexpr int64_t kHeadBytes = 2 * kMaxRanks * sizeof(Word);

  Team& team_;
  int count_;
  bool shared_;
  int64_t data_bytes_, calls_ = 0;
  Extra extra_;
  int lane_ = -1;  // of the operators; none yet
  uint32_t number_;
  std::shared_ptr<SymmetricMemory> heads_, data_, packets_;
  std::shared_ptr<std::byte> scratch_, packet_calls_;
};

/// Throws Error{kDevice} on every rank if some rank has no room for `bytes` more: before anything is allocated.
/// Collective.
void require_room(Team& team, std::string_view what, int64_t bytes);

}  // namespace flux
