#include "report/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace flux {
namespace {

int terminal_columns() {
  struct winsize size {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// Minutes and seconds, and hours where there are some.
std::string clock(double seconds) {
  int64_t const s = static_cast<int64_t>(seconds + 0.5);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace

std::string progress_line(std::string_view title, int64_t done, int64_t total, double elapsed_s, int columns) {
  double const part = total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 0;
  std::string const after =
      part > 0 ? fmt::format(" {:3.0f} %  {} left", 100 * part, clock(elapsed_s / part - elapsed_s)) : "   0 %";
  int const room = columns - static_cast<int>(after.size()) - 3;  // "[", "]" and a space before
  int const bar = std::clamp(room - static_cast<int>(title.size()), 0, 40);
  std::string const words(title.substr(0, static_cast<size_t>(std::max(room - bar, 0))));
  int const filled = static_cast<int>(part * bar);
  return fmt::format("{} [{:=<{}}{:<{}}]{}", words, "", filled, "", bar - filled, after)
      .substr(0, static_cast<size_t>(std::max(columns, 0)));
}

Progress::Progress(std::string title, int64_t total)
    : title_(std::move(title)),
      total_(total),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (drawn_ms_ > 0) fmt::print(stderr, "\r\033[K");
}

void Progress::advance(int64_t count) {
  done_ += count;
  if (!terminal_) return;
  int64_t const now_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start_).count();
  int64_t last_ms = drawn_ms_;
  if (now_ms < 1000 || now_ms - last_ms < 100) return;
  if (drawn_ms_.compare_exchange_strong(last_ms, now_ms)) draw(static_cast<double>(now_ms) / 1000);
}

void Progress::draw(double elapsed_s) {
  // A column stays free: a full line would wrap.
  fmt::print(stderr, "\r{}\033[K", progress_line(title_, done_, total_, elapsed_s, terminal_columns() - 1));
}

}  // namespace flux
