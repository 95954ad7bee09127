#include "cli/machine.h"

#include <fstream>
#include <thread>

namespace flux::cli {

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

MachineFacts machine_facts() {
  MachineFacts facts;
  facts.cpu = cpu_name(), facts.cores = std::thread::hardware_concurrency(), facts.link = "declared";
  return facts;
}

}  // namespace flux::cli
