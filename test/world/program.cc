#include "world/program.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "temporary_folder.h"
#include "world/launcher.h"

namespace flux::test {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

WorldOptions options_of(Program const& p) {
  WorldOptions o;
  o.limit_seconds = p.limit_seconds, o.device = p.device, o.nodes = p.nodes;
  return o;
}

// Runs `f` and says how it ended.
template <class F>
Ending ending_of(Clock::time_point start, F&& f) {
  Ending e;
  try {
    f();
    e.code = kFine;
  } catch (Error const& error) {
    e.code = kRaised, e.kind = error.kind(), e.said = error.what();
  } catch (std::exception const& error) {
    e.code = kWrong, e.said = error.what();
  }
  e.seconds = seconds_since(start);
  return e;
}

// Where ranks leave word of their ending: a file each.
struct Letters {
  TemporaryFolder folder;
  Letters() { setenv("FLUX_TEST_FOLDER", folder.path().c_str(), 1); }
  std::vector<Ending> endings(int ranks) const {
    std::vector<Ending> all(ranks);
    for (int r = 0; r < ranks; ++r) {
      std::ifstream file(folder / std::to_string(r));
      int kind = 0;
      if (file >> all[r].code >> kind >> all[r].seconds) std::getline(file >> std::ws, all[r].said);
      all[r].kind = static_cast<ErrorKind>(kind);
    }
    return all;
  }
};

std::vector<std::string> command_for(std::string const& name) {
  return {std::filesystem::read_symlink("/proc/self/exe").string(), "--program", name};
}

}  // namespace

Program const& program(std::string const& name) {
  for (Program const& p : programs())
    if (p.name == name) return p;
  throw std::runtime_error("there is no program " + name);
}

std::vector<Ending> run_as_threads(std::string const& name) {
  Program const& p = program(name);
  std::vector<Ending> endings(p.ranks);
  auto const start = Clock::now();
  try {
    run_threads(p.ranks, options_of(p), [&](World& world) {
      Ending& e = endings[world.rank()];
      std::exception_ptr thrown;
      e = ending_of(start, [&] {
        try {
          p.body(world);
        } catch (...) {
          thrown = std::current_exception();
          throw;
        }
      });
      if (thrown) std::rethrow_exception(thrown);  // as it would without a test around it
    });
  } catch (std::exception const&) {
  }
  return endings;
}

std::vector<Ending> run_as_processes(std::string const& name, int* status) {
  Program const& p = program(name);
  Letters const letters;
  int const code = launch(p.ranks, command_for(name), p.grace_seconds);
  if (status) *status = code;
  return letters.endings(p.ranks);
}

std::vector<Ending> run_under_mpirun(std::string const& name, int* status) {
  Program const& p = program(name);
  Letters const letters;
  std::vector<std::string> words = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", std::to_string(p.ranks)};
  for (auto& word : command_for(name)) words.push_back(word);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t const pid = fork();
  if (pid == 0) {
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // Open MPI keeps memory to the end
    execvp(argv[0], argv.data());
    _exit(127);
  }
  auto const start = Clock::now();
  int how = 0;
  bool hung = false;
  while (waitpid(pid, &how, WNOHANG) == 0) {
    hung = hung || seconds_since(start) > 60;
    if (hung) kill(pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  *status = hung ? kHung : WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
  return letters.endings(p.ranks);
}

int run_as_rank(std::string const& name) {
  Program const& p = program(name);
  auto const start = Clock::now();
  int rank = -1;
  Ending const e = ending_of(start, [&] {
    auto bootstrap = bootstrap_from_environment();
    rank = bootstrap->rank();
    if (name == "never_comes" && rank == 1) {
      std::this_thread::sleep_for(std::chrono::seconds(3));
      throw std::runtime_error("never came");
    }
    if (name == "ends_early" && rank == 1) throw std::runtime_error("ended early");
    auto const world = World::processes(std::move(bootstrap), options_of(p));
    p.body(*world);
  });
  char const* const folder = std::getenv("FLUX_TEST_FOLDER");
  if (folder && rank >= 0) {
    auto const path = std::filesystem::path(folder) / std::to_string(rank);
    std::ofstream(path) << e.code << " " << static_cast<int>(e.kind) << " " << e.seconds << " " << e.said << "\n";
  }
  return e.code;
}

}  // namespace flux::test
