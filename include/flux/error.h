#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace flux {

/// What went wrong, so that a caller can decide without reading the text.
enum class ErrorKind {
  kInvalid,      ///< the caller's arguments are wrong; nothing was launched
  kUnsupported,  ///< a correct request that this build, machine or shape cannot serve
  kDevice,       ///< CUDA, NCCL, MPI or the operating system reported a failure
  kTimeout,      ///< a peer did not arrive within the bound, died, or made a different call
  kInternal,     ///< a bug in FLUX
};

constexpr std::string_view name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid: return "invalid";
    case ErrorKind::kUnsupported: return "unsupported";
    case ErrorKind::kDevice: return "device";
    case ErrorKind::kTimeout: return "timeout";
    case ErrorKind::kInternal: return "internal";
  }
  return "internal";
}

/// The one exception of FLUX. The message says what was given, what is allowed and what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string const& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace flux
