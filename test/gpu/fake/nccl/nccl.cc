// NCCL played by files: a piece that is sent is a file that its receiver waits for. Enough of it for
// src/world/cuda/nccl.cc.
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

struct UniqueId {
  char folder[128];
};
struct Communicator {
  std::filesystem::path folder;
  int rank, ranks;
  std::map<int, int> sent, received;  // to and from a peer
  std::atomic<bool> aborted{false};
};
constexpr int kBFloat16 = 9;
// Sends first: a receiver that waits holds up nobody.
std::vector<std::function<void()>> sends, receives;

std::filesystem::path letter(Communicator const& c, int from, int to, int number) {
  return c.folder / (std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(number));
}

}  // namespace

extern "C" {

int ncclGetUniqueId(UniqueId* id) {
  std::string folder = std::filesystem::temp_directory_path() / "fake-nccl-XXXXXX";
  if (!mkdtemp(folder.data())) return 1;
  std::strncpy(id->folder, folder.c_str(), sizeof id->folder - 1);
  return 0;
}
int ncclCommInitRank(Communicator** c, int ranks, UniqueId id, int rank) {
  *c = new Communicator{id.folder, rank, ranks, {}, {}, {}};
  return 0;
}
int ncclCommInitRankConfig(Communicator** c, int ranks, UniqueId id, int rank, void*) {
  return ncclCommInitRank(c, ranks, id, rank);
}
// FLUX_TEST_NCCL_FAILS=RANK: what reports an error from then on is rank RANK of the world.
int ncclCommGetAsyncError(Communicator*, int* status) {
  char const *const fails = std::getenv("FLUX_TEST_NCCL_FAILS"), *const rank = std::getenv("FLUX_RANK");
  constexpr int kRemoteError = 6;
  *status = fails && rank && std::string(fails) == rank ? kRemoteError : 0;
  return 0;
}
int ncclCommAbort(Communicator* c) { return c->aborted = true, 0; }
int ncclCommDestroy(Communicator* c) {
  std::error_code ignored;
  if (c->rank == 0) std::filesystem::remove(c->folder, ignored);  // empty, if all have come
  delete c;
  return 0;
}
int ncclGroupStart() { return 0; }
int ncclGroupEnd() {
  for (auto* list : {&sends, &receives}) {
    for (auto const& act : *list) act();
    list->clear();
  }
  return 0;
}
int ncclSend(void const* data, size_t bytes, int, int to, Communicator* c, void*) {
  sends.emplace_back([=] {
    auto const path = letter(*c, c->rank, to, c->sent[to]++);
    std::ofstream(path.string() + "~") << std::string(static_cast<char const*>(data), bytes);
    std::filesystem::rename(path.string() + "~", path);
  });
  return 0;
}
int ncclRecv(void* data, size_t bytes, int, int from, Communicator* c, void*) {
  receives.emplace_back([=] {
    auto const path = letter(*c, from, c->rank, c->received[from]++);
    while (!std::filesystem::exists(path)) {
      if (c->aborted) return;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    std::ifstream(path).read(static_cast<char*>(data), static_cast<std::streamsize>(bytes));
    std::filesystem::remove(path);
  });
  return 0;
}
// The collectives, as those would make them: of numbers, bf16 alone, in rank order.
int ncclAllGather(void const* mine, void* all, size_t bytes, int, Communicator* c, void*) {
  auto* const at = static_cast<char*>(all);
  std::memmove(at + c->rank * bytes, mine, bytes);
  for (int p = 0; p < c->ranks; ++p)
    if (p != c->rank) ncclSend(mine, bytes, 0, p, c, nullptr), ncclRecv(at + p * bytes, bytes, 0, p, c, nullptr);
  return 0;
}
int ncclBroadcast(void const* from, void* to, size_t bytes, int, int root, Communicator* c, void*) {
  for (int p = 0; p < c->ranks && root == c->rank; ++p)
    if (p != root) ncclSend(from, bytes, 0, p, c, nullptr);
  return root == c->rank ? 0 : ncclRecv(to, bytes, 0, root, c, nullptr);
}
int ncclReduce(void const* from, void* to, size_t count, int type, int, int root, Communicator* c, void*) {
  if (type != kBFloat16) return 4;
  if (root != c->rank) return ncclSend(from, 2 * count, 0, root, c, nullptr);
  auto parts = std::make_shared<std::vector<std::vector<uint16_t>>>(c->ranks, std::vector<uint16_t>(count));
  std::memcpy((*parts)[root].data(), from, 2 * count);
  for (int p = 0; p < c->ranks; ++p)
    if (p != root) ncclRecv((*parts)[p].data(), 2 * count, 0, p, c, nullptr);
  receives.emplace_back([=] {
    for (size_t i = 0; i < count; ++i) {
      float sum = 0;
      for (auto const& part : *parts) sum += std::bit_cast<float>(uint32_t{part[i]} << 16);
      static_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(sum) >> 16);
    }
  });
  return 0;
}
int ncclReduceScatter(void const* all, void* to, size_t count, int type, int sum, Communicator* c, void*) {
  for (int p = 0; p < c->ranks; ++p)
    if (ncclReduce(static_cast<char const*>(all) + p * 2 * count, to, count, type, sum, p, c, nullptr) != 0) return 4;
  return 0;
}
int ncclAllReduce(void const* from, void* to, size_t count, int type, int sum, Communicator* c, void*) {
  for (int p = 0; p < c->ranks; ++p)  // everybody sums for himself
    if (ncclReduce(from, to, count, type, sum, p, c, nullptr) != 0) return 4;
  return 0;
}
int ncclGetVersion(int* version) {
  char const* const said = std::getenv("FLUX_TEST_NCCL_VERSION");
  return *version = said ? std::atoi(said) : 22809, 0;
}
char const* ncclGetErrorString(int) { return "planted"; }
}
