// The bootstrap under mpirun. The only file that knows MPI; a build without MPI keeps the error.
#include <fmt/format.h>

#include "flux/world.h"

#ifdef FLUX_WITH_MPI
#include <mpi.h>

#include <cstring>
#include <thread>
#endif

namespace flux {

#ifdef FLUX_WITH_MPI
namespace {

class MpiBootstrap final : public Bootstrap {
 public:
  MpiBootstrap() {
    int ready = 0;
    MPI_Initialized(&ready);
    if (!ready) {
      int provided = 0;
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
      std::atexit([] {
        int finalized = 0;
        MPI_Finalized(&finalized);
        if (!finalized && !failed) MPI_Finalize();
      });
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  ~MpiBootstrap() override {
    if (!failed) MPI_Comm_free(&comm_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void abandon() override { failed = true; }  // MPI_Finalize would wait for the missing rank

  std::vector<std::string> all_gather(std::string_view mine, double limit_seconds) override {
    int const length = static_cast<int>(mine.size());
    std::vector<int> lengths(size_), starts(size_);
    wait([&](MPI_Request* r) { MPI_Iallgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm_, r); },
         limit_seconds);
    int total = 0;
    for (int r = 0; r < size_; ++r) starts[r] = total, total += lengths[r];
    std::string bytes(total, '\0');
    wait(
        [&](MPI_Request* r) {
          MPI_Iallgatherv(mine.data(), length, MPI_BYTE, bytes.data(), lengths.data(), starts.data(), MPI_BYTE, comm_,
                          r);
        },
        limit_seconds);
    std::vector<std::string> all;
    for (int r = 0; r < size_; ++r) all.push_back(bytes.substr(starts[r], lengths[r]));
    return all;
  }

 private:
  // MPI's own collectives wait for ever; these poll, so that a missing rank ends in an error.
  template <class F>
  void wait(F&& start, double limit_seconds) {
    MPI_Request request;
    start(&request);
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_seconds);
    for (int done = 0;;) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done) return;
      if (std::chrono::steady_clock::now() > deadline) {
        abandon();
        throw Error(ErrorKind::kTimeout,
                    fmt::format("rank {} waited {} s for the other ranks in MPI", rank_, limit_seconds));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  static inline bool failed = false;
  MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
};

}  // namespace

std::unique_ptr<Bootstrap> bootstrap_from_mpi() { return std::make_unique<MpiBootstrap>(); }
#else
std::unique_ptr<Bootstrap> bootstrap_from_mpi() {
  throw Error(ErrorKind::kUnsupported,
              "this build has no MPI; install libopenmpi-dev and build again, or use `flux launch`");
}
#endif

}  // namespace flux
