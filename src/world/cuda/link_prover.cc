#include "world/cuda/link_prover.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "kernel/check.h"
#include "kernel/prove.h"
#include "world/cuda/copy_stream.h"
#include "world/cuda/peer_memory.h"

namespace flux {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Word after_copy(Word seed) { return seed * 2 + 1; }
constexpr Word after_stores(Word seed) { return seed * 2 + 3; }
constexpr Word stored(Word seed) { return ~seed; }  // the seed of what a kernel stores

int64_t differing(Word const* found, Word seed) {
  int64_t count = 0;
  for (int64_t i = 0; i < ProofPart::kCount; ++i) count += found[i] != pattern(seed, i);
  return count;
}

/// What `act` throws, or nothing.
template <class Act>
std::string error_of(Act&& act) {
  try {
    return act();
  } catch (Error const& error) {
    return error.what();
  }
}

}  // namespace

LinkProver::LinkProver(int device, double limit_seconds) : LinkProver(limit_seconds) {
  check_cuda(cudaSetDevice(device), "choosing a GPU");
  void *local = nullptr, *pinned = nullptr, *wrong = nullptr;
  check_cuda(cudaMalloc(&local, sizeof(ProofPart)), "memory for the proof of links");
  local_ = static_cast<ProofPart*>(local);
  check_cuda(cudaHostAlloc(&pinned, sizeof(ProofPart), cudaHostAllocDefault), "memory for the proof of links");
  pinned_ = static_cast<ProofPart*>(pinned);
  check_cuda(cudaHostAlloc(&wrong, 2 * sizeof(Word), cudaHostAllocDefault), "memory for the proof of links");
  wrong_ = static_cast<Word*>(wrong);
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream for the proof of links");
}

LinkProver::~LinkProver() {
  if (gave_up_on_gpu()) return;
  if (stream_) cudaStreamDestroy(stream_);
  cudaFree(local_), cudaFreeHost(pinned_), cudaFreeHost(wrong_);
}

std::string LinkProver::settle() {
  auto const deadline = Clock::now() + std::chrono::duration<double>(limit_seconds_);
  for (;;) {
    cudaError_t const state = cudaStreamQuery(stream_);
    if (state == cudaSuccess) return {};
    cudaGetLastError();
    if (state != cudaErrorNotReady) return cudaGetErrorString(state);
    if (Clock::now() > deadline) {
      give_up_on_gpu();
      return fmt::format("what was sent had not arrived after {:g} s", limit_seconds_);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// Of what lies in pinned memory.
std::string LinkProver::differences(Word seed) const {
  auto said = [](int64_t wrong, char const* by) {
    return fmt::format("{} of {} elements written by {} are not those that were sent", wrong, ProofPart::kCount, by);
  };
  if (int64_t const wrong = differing(pinned_->copied, seed)) return said(wrong, "a copy");
  if (int64_t const wrong = differing(pinned_->stored, stored(seed))) return said(wrong, "a kernel");
  if (pinned_->behind_copy != after_copy(seed)) return "the word set behind a copy is not there";
  if (pinned_->behind_stores != after_stores(seed)) return "the word set behind a kernel's stores is not there";
  return {};
}

std::string LinkProver::write(ProofPart* part, Word seed) {
  return error_of([&]() -> std::string {
    for (int64_t i = 0; i < ProofPart::kCount; ++i) pinned_->copied[i] = pattern(seed, i);
    Transfer t;
    t.rows = 1, t.row_bytes = t.to_stride = t.from_stride = sizeof part->copied;
    t.to = reinterpret_cast<std::byte*>(local_->copied), t.from = reinterpret_cast<std::byte const*>(pinned_->copied);
    enqueue(t, stream_);
    t.to = reinterpret_cast<std::byte*>(part->copied), t.from = reinterpret_cast<std::byte const*>(local_->copied);
    t.set = &part->behind_copy, t.goal = after_copy(seed);
    enqueue(t, stream_);
    enqueue_pattern(part->stored, ProofPart::kCount, stored(seed), &part->behind_stores, after_stores(seed), stream_);
    enqueue_check(part->copied, ProofPart::kCount, seed, &part->behind_copy, after_copy(seed), wrong_, stream_);
    enqueue_check(part->stored, ProofPart::kCount, stored(seed), &part->behind_stores, after_stores(seed), wrong_ + 1,
                  stream_);
    if (auto failure = settle(); !failure.empty()) return failure;
    if (wrong_[0] || wrong_[1])
      return fmt::format("a kernel that reads there does not find what {} wrote",
                         wrong_[0] ? "a copy" : "a kernel's stores");
    if (auto failure = read(part, seed); !failure.empty()) return "read back, " + failure;
    return {};
  });
}

std::string LinkProver::read(ProofPart const* part, Word seed) {
  return error_of([&]() -> std::string {
    std::memset(pinned_, 0, sizeof *pinned_);
    Transfer t;
    t.rows = 1, t.row_bytes = t.to_stride = t.from_stride = sizeof *part;
    t.to = reinterpret_cast<std::byte*>(pinned_), t.from = reinterpret_cast<std::byte const*>(part);
    enqueue(t, stream_);
    if (auto failure = settle(); !failure.empty()) return failure;
    return differences(seed);
  });
}

std::string uuid_of(int device) {
  cudaDeviceProp properties;
  check_cuda(cudaGetDeviceProperties(&properties, device), "a GPU's properties");
  return {properties.uuid.bytes, sizeof properties.uuid.bytes};
}

std::string way_to(int device, std::string const& uuid) {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "how many GPUs");
  for (int peer = 0; peer < count; ++peer) {
    if (uuid_of(peer) != uuid) continue;
    if (peer == device) return "same GPU";
    int atomics = 0;  // NVLink has them, PCIe has not
    check_cuda(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, device, peer), "a link");
    return atomics ? "NVLink" : "PCIe";
  }
  return "not visible here";
}

}  // namespace flux
