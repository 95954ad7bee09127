#pragma once
// The events of a simulated call, in the order of their times. Its set-up, its GEMMs, and its copies and sums stand in
// files of their own.
#include <queue>

#include "plan/ports.h"
#include "plan/simulate.h"
#include "plan/simulated_rank.h"
#include "tile/nodes.h"

namespace flux {

class Simulator {
 public:
  Simulator(Problem const& problem, Plan const& plan, Machine const& machine, bool draw)
      : machine_(machine_for(machine, problem.dtype)),
        draw_(draw),
        ports_(problem.ranks),
        nics_(problem.ranks),
        ranks_(static_cast<size_t>(problem.ranks)) {
    out_.resolved = resolve(problem, plan, machine);
    out_.parts = parts(problem, machine);
    element_ = static_cast<double>(size_of(result_of(problem.dtype)));
    prepare();
  }
  Simulation run();

 private:
  enum class Kind : uint8_t { kTile, kMultiplied, kStored, kCopy, kArrived, kPartial, kRail };
  struct Event {
    double at;
    uint64_t order;  // events of one moment happen as they were made
    Kind kind;
    int rank, index;
    bool operator<(Event const& other) const { return at > other.at || (at == other.at && order > other.order); }
  };

  Problem const& problem() const { return r().problem; }
  Resolved const& r() const { return out_.resolved; }
  int count() const { return problem().ranks; }
  Nodes nodes() const { return {problem().ranks, problem().nodes}; }
  SimulatedRank& rank(int p) { return ranks_[static_cast<size_t>(p)]; }
  void push(double at, Kind kind, int rank, int index) { events_.push({at, events_made_++, kind, rank, index}); }

  void prepare();
  void prepare_gather(int p);
  void prepare_ring(int p);
  void prepare_sums(int p);
  void prepare_packets();
  void prepare_relay(int p);
  Copy whole(int64_t row, int64_t rows) const;
  Copy piece(int shard, int64_t tile, int slice, int from, int to) const;
  void add_handing_on(int p);
  void send_along_rails(int p, double at);
  void send_results(int p, double now);
  void rail(Copy const& copy, double at);
  void came(int index, double now);
  void landed(Copy const& c, double now);
  void met(int at, int node, int band, double now);
  int64_t words_of_node() const { return int64_t{1} * count() * r().bands.most(); }
  void add_shard(int engine, int from, int to);
  void add_result(int from, int to);
  void begin_gemm(int p, double at);
  bool ready(SimulatedRank& s, Tile tile, int slice, int worker);
  void tile(int p, int w, double now);
  double columns(Tile tile) const;
  double storing_us(Tile tile) const;
  double store(int from, int to, double now, double bytes);
  void multiplied(int p, int w, double now);
  void stored(int p, int w, double now);
  void next(SimulatedRank& s, int p, int w, double now);
  void gemm_ended(int p, double now);
  double blocks_beside(bool writes) const;
  void copy(int p, double now);
  Ports::Interval carry(Copy const& c, double at, double gbps);
  double fetched(int to, double at, double bytes);
  void arrived(int p, int index, double now);
  void set_word(int at, int64_t index, double now);
  void announced(int from, int owner, int band, double rows, double now);
  void partial(int owner, int band, double now);
  void sum(int p, int band, double now);
  void summed(int p, double now);
  void sum_packets();
  std::vector<double> exchange(std::vector<double> ready);
  void gathered_sums(SimulatedRank& s, double now);
  void finish();
  void describe();
  static int engine_track(SimulatedRank const& s) { return static_cast<int>(std::max<size_t>(s.workers.size(), 1)); }
  int rail_track() const { return machine_.processors + 2; }  // behind workers, copies and sums
  void draw(int p, int track, SpanKind kind, double begin, double end, int64_t row, int64_t rows, int n, int peer = -1);

  static constexpr double kBefore = 0.6;  // of Machine::gemm_us passes before the first tile, the rest after the last
  static constexpr double kSumReaches = 0.7;  // of the memory's rate

  bool through_host() const { return machine_.link.kind == LinkKind::kHost; }

  Machine const machine_;
  bool draw_;
  Ports ports_, nics_;
  std::vector<Copy> on_rails_;
  std::vector<SimulatedRank> ranks_;
  std::priority_queue<Event> events_;
  uint64_t events_made_ = 0;
  Simulation out_;
  double element_ = 2;
  int multiplied_ = 0;  // ranks whose GEMM has ended, of calls by packets
};

}  // namespace flux
