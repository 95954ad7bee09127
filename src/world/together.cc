#include "world/together.h"

#include <fmt/format.h>

#include <exception>

namespace flux {

void together(Bootstrap& bootstrap, double limit_seconds, std::function<void()> const& step) {
  // The kind of the error, as a letter, and what it says; empty: none.
  std::string verdict;
  auto failed = [&](ErrorKind kind, char const* what) {
    verdict = fmt::format("{}rank {}: {}", static_cast<char>('a' + static_cast<int>(kind)), bootstrap.rank(), what);
  };
  auto raise = [](std::string const& said) { throw Error(static_cast<ErrorKind>(said.front() - 'a'), said.substr(1)); };
  try {
    step();
  } catch (Error const& error) {
    failed(error.kind(), error.what());
  } catch (std::exception const& error) {
    failed(ErrorKind::kDevice, error.what());
  }
  std::vector<std::string> verdicts;
  try {
    verdicts = bootstrap.all_gather(verdict, limit_seconds);
  } catch (Error const&) {
    if (!verdict.empty()) raise(verdict);  // says more than that somebody did not come
    throw;
  }
  for (auto const& said : verdicts)
    if (!said.empty()) raise(said);
}

}  // namespace flux
