#pragma once
// Whether one GPU reaches the memory of another: shown, not assumed. Some machines report peer access and then lose or
// mix up what is sent (an IOMMU between PCIe slots), or never end a copy.
#include <string>

#include "tile/signal.h"

struct CUstream_st;

namespace flux {

/// What a writer leaves in the owner's memory: elements brought by a copy, elements stored by a kernel, and a word
/// behind each.
struct ProofPart {
  static constexpr int64_t kCount = 16 * 1024;
  Word copied[kCount], stored[kCount];
  Word behind_copy, behind_stores;
  Word fill[30];  // parts of different writers share no cache line
};

/// Tries the ways from one GPU, of this thread. Every attempt is bounded; after one that did not end nothing of this
/// GPU is freed any more.
class LinkProver {
 public:
  LinkProver(int device, double limit_seconds);
  ~LinkProver();
  LinkProver(LinkProver const&) = delete;

  /// Writes `seed`'s pattern to `part`, which lies on the other GPU, and reads it back by a kernel's loads and by
  /// copies. Returns what went wrong, or nothing.
  std::string write(ProofPart* part, Word seed);
  /// The same of what another rank wrote into a part of ours.
  std::string read(ProofPart const* part, Word seed);

 private:
  explicit LinkProver(double limit_seconds) : limit_seconds_(limit_seconds) {}
  std::string settle();  // waits for the stream, within the limit
  std::string differences(Word seed) const;

  double limit_seconds_;
  CUstream_st* stream_ = nullptr;
  ProofPart* local_ = nullptr;   // on our GPU: the pattern
  ProofPart* pinned_ = nullptr;  // on the host: the pattern, then what came back
  Word* wrong_ = nullptr;        // pinned: what the kernels that read have found
};

/// How GPU `device` reaches the one with this UUID (16 bytes): `same GPU`, `NVLink`, `PCIe` or `not visible here`.
std::string way_to(int device, std::string const& uuid);
std::string uuid_of(int device);

}  // namespace flux
