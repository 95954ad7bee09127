#pragma once
// The links of a simulated machine: every rank has one way out and one way in, each carries one transfer at a time.
#include <algorithm>
#include <vector>

namespace flux {

class Ports {
 public:
  explicit Ports(int ranks) : out_(static_cast<size_t>(ranks)), in_(static_cast<size_t>(ranks)) {}

  struct Interval {
    double begin, end;
  };
  /// Carries `bytes` from one rank to another, no earlier than `at`, at `gbps`. The switch between them buffers: a busy
  /// way in does not hold up what its sender sends elsewhere. Times in microseconds.
  Interval carry(int from, int to, double at, double bytes, double gbps) {
    if (from == to) return {at, at};
    double const begin = leave(from, at, bytes, gbps).begin;
    return {begin, enter(to, begin, bytes, gbps).end};
  }
  /// One half of that.
  Interval leave(int from, double at, double bytes, double gbps) {
    return out_[static_cast<size_t>(from)].serve(at, bytes / gbps / 1e3, bytes);
  }
  Interval enter(int to, double at, double bytes, double gbps) {
    return in_[static_cast<size_t>(to)].serve(at, bytes / gbps / 1e3, bytes);
  }

  /// Over all ranks: what left them, or came where it is fetched from memory that all reach; and the longest that a way
  /// was busy.
  double bytes() const {
    double sent = 0, came = 0;
    for (Port const& port : out_) sent += port.bytes;
    for (Port const& port : in_) came += port.bytes;
    return std::max(sent, came);
  }
  double busiest_us() const {
    double most = 0;
    for (auto const* side : {&out_, &in_})
      for (Port const& port : *side) most = std::max(most, port.busy);
    return most;
  }

 private:
  struct Port {
    double free = 0, busy = 0, bytes = 0;
    Interval serve(double at, double takes, double more) {
      double const begin = std::max(at, free);
      free = begin + takes, busy += takes, bytes += more;
      return {begin, free};
    }
  };
  std::vector<Port> out_, in_;
};

}  // namespace flux
