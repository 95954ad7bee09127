#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace flux {

/// "packing  [=====>     ]  42 %  0:07 left", at most `columns` wide. `elapsed_s` seconds passed for `done` of `total`.
std::string progress_line(std::string_view title, int64_t done, int64_t total, double elapsed_s, int columns);

/// A progress bar on stderr for work that takes over a second; silent before that, and where stderr is no terminal.
/// The line is wiped at the end, so that what follows starts clean.
class Progress {
 public:
  Progress(std::string title, int64_t total);
  Progress(Progress const&) = delete;
  Progress& operator=(Progress const&) = delete;
  ~Progress();

  /// From any thread. Draws at most ten times a second.
  void advance(int64_t count = 1);

 private:
  void draw(double elapsed_s);

  std::string title_;
  int64_t total_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_;
  std::atomic<int64_t> done_ = 0, drawn_ms_ = 0;
};

}  // namespace flux
