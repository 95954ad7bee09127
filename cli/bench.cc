#include "cli/command.h"
namespace flux::cli {
void add_bench(CLI::App&, Action&) {}
}  // namespace flux::cli
