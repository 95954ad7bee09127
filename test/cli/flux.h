#pragma once
// Runs the command line as a user would.
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace flux::test {

struct Outcome {
  int code = -1;
  std::string text;  // stdout and stderr
  nlohmann::json json() const { return nlohmann::json::parse(text); }
};

inline Outcome flux(std::string const& arguments) {
  Outcome outcome;
  FILE* pipe = popen((FLUX_CLI " " + arguments + " 2>&1").c_str(), "r");
  if (!pipe) return outcome;
  std::array<char, 4096> buffer;
  while (size_t const n = fread(buffer.data(), 1, buffer.size(), pipe)) outcome.text.append(buffer.data(), n);
  int const status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

/// Whether operators run on this machine's GPUs: the commands then do so by themselves.
inline bool hopper() {
  auto const machine = flux("doctor --json").json();
  for (auto const& gpu : machine["gpus"])
    if (gpu["capability"] == 90) return true;
  return false;
}

/// The same on this machine's cores, whatever GPUs it has.
inline Outcome on_host(std::string const& arguments) { return flux(arguments + " --host"); }

}  // namespace flux::test
