// Runs a fuzz target over the files of its corpus and over a few thousand mutations of each, where the compiler has no
// libFuzzer. The mutations are the same in every run.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

void run(Bytes const& bytes) {
  Bytes const exact(bytes.begin(), bytes.end());  // no spare room behind the end, so that sanitizers see a read past it
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

/// One to four changes: bytes overwritten, made extreme, removed or repeated, or the end cut off.
Bytes mutated(Bytes bytes, std::mt19937& random) {
  auto below = [&](size_t bound) { return std::uniform_int_distribution<size_t>(0, bound - 1)(random); };
  for (size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) {
    size_t const at = below(bytes.size()), count = 1 + below(std::min<size_t>(bytes.size() - at, 8));
    auto const begin = bytes.begin() + static_cast<std::ptrdiff_t>(at),
               end = begin + static_cast<std::ptrdiff_t>(count);
    switch (below(6)) {
      case 0: *begin = static_cast<uint8_t>(below(256)); break;
      case 1: *begin = static_cast<uint8_t>("0123456789[]{}(),:\"'"[below(20)]); break;
      case 2: std::fill(begin, end, below(2) ? 0xff : 0); break;
      case 3: bytes.erase(begin, end); break;
      case 4: {
        Bytes const part(begin, end);
        bytes.insert(end, part.begin(), part.end());
        break;
      }
      case 5: bytes.resize(at); break;
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kMutations = 3000;
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    for (auto const& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      Bytes const bytes{std::istreambuf_iterator<char>(file), {}};
      run(bytes);
      std::mt19937 random(1);
      for (int mutation = 0; mutation < kMutations; ++mutation) run(mutated(bytes, random));
      ++files;
    }
  }
  std::printf("%d inputs, %d mutations of each\n", files, kMutations);
  return files > 0 ? 0 : 1;  // an empty corpus tests nothing
}
