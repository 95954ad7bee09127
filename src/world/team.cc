#include "world/team.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace flux {
namespace {

std::string_view describe(Awaited what) {
  switch (what) {
    case Awaited::kNothing: return "nothing";
    case Awaited::kCall: return "the beginning of this call";
    case Awaited::kCredit: return "leave to reuse a buffer";
    case Awaited::kRows: return "rows of the gathered input";
    case Awaited::kPartial: return "partial sums";
    case Awaited::kResult: return "summed rows";
  }
  return "?";
}

// A reason of the host's own, such as that another node has ended: the raiser's control block says it.
constexpr auto kSaid = static_cast<Reason>(5);

// A killed child stays a zombie until its parent looks; it is gone all the same.
bool process_is_gone(int32_t pid) {
  if (kill(pid, 0) != 0 && errno == ESRCH) return true;
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(stat, line)) return false;
  size_t const state = line.rfind(") ");
  return state != std::string::npos && state + 2 < line.size() && (line[state + 2] == 'Z' || line[state + 2] == 'X');
}

}  // namespace

Team::Team(std::unique_ptr<Bootstrap> bootstrap, Nodes const& nodes, MemoryKind kind, WorldOptions const& options,
           std::shared_ptr<Gpu> gpu)
    : bootstrap_(std::move(bootstrap)), nodes_(nodes), kind_(kind), options_(options), gpu_(std::move(gpu)) {
  if (size() < 1 || size() > kMaxRanks)
    throw Error(ErrorKind::kInvalid, fmt::format("{} ranks asked for; a world has 1 to {}", size(), kMaxRanks));
  memory_ = gpu_ ? gpu_->allocate(*bootstrap_, sizeof(Control), Use::kControl, options_.limit_seconds)
                 : SymmetricMemory::allocate(kind_, *bootstrap_, nodes_, sizeof(Control), options_.limit_seconds);
  control(rank()).pid = getpid();
  if (gpu_) links_ = gpu_->prove_links(*bootstrap_, options_.limit_seconds);
  if (gpu_) gpu_abort_ = gpu_->allocate(*bootstrap_, sizeof(Word), Use::kAbort, options_.limit_seconds);
  if (nodes_.count > 1) rails_ = std::make_unique<Rails>(*bootstrap_, nodes_, options_.limit_seconds);
  // Behind this every control block is ready, and all know what rank 0 plans by.
  from_rank_zero_ = flux::from_rank_zero(all_gather(
      rank() == 0 || (gpu_ && gpu_->mirrored()) ? to_bytes(of_this_rank(options_, gpu_.get())) : std::string())[0]);
  watcher_ = std::thread([this] { watch_peers(); });
}

Team::~Team() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  watcher_.join();
  Word const verdict = load_acquire(&control(rank()).abort);
  if (verdict != 0) bootstrap_->abandon();
  if (rails_) rails_->end(verdict == 0 ? std::string() : describe(verdict));
  store_release(&control(rank()).left, 1);
}

std::vector<std::string> Team::all_gather(std::string_view mine) {
  return bootstrap_->all_gather(mine, options_.limit_seconds);
}

std::shared_ptr<SymmetricMemory> Team::allocate(int64_t bytes, Use use) {
  if (gpu_) return gpu_->allocate(*bootstrap_, bytes, use, options_.limit_seconds);
  return SymmetricMemory::allocate(kind_, *bootstrap_, nodes_, bytes, options_.limit_seconds);
}

// What waiters of the operators go by: kernels, if there is a GPU.
Watch Team::watch(Word call) const {
  if (!gpu_) return host_watch(call);
  Watch w = host_watch(call);
  w.abort = gpu_abort_->view<Word>(0);
  for (int r : neighbours()) w.told.base[r] = &control_on_gpu(r).abort;
  w.record = &control_on_gpu(rank()).record;
  return w;
}

// What the host itself waits by and raises. Kernels that wait look at it now and then.
Watch Team::host_watch(Word call) const {
  Watch w;
  for (int r : neighbours()) w.abort.base[r] = &control(r).abort;
  w.record = &control(rank()).record;
  w.limit_ns = static_cast<int64_t>(options_.limit_seconds * 1e9);
  w.rank = rank(), w.ranks = size(), w.call = call;
  return w;
}

Watch Team::begin_call(int lane, Word digest) {
  check();
  Word const number = static_cast<Word>(calls_[lane].load() >> 32) + 1;
  uint64_t const entry = uint64_t{number} << 32 | digest;
  calls_[lane].store(entry);
  for (int p : neighbours()) std::atomic_ref(control(p).calls[lane][rank()]).store(entry);
  // Both sides post, then look: whoever comes second sees the other's entry here, the first one's watcher sees it
  // later.
  if (sees_other_call(lane)) check();
  return watch(number);
}

bool Team::sees_other_call(int lane) {
  uint64_t const mine = calls_[lane].load();
  for (int p : neighbours()) {
    uint64_t const theirs = std::atomic_ref(control(rank()).calls[lane][p]).load();
    if (theirs >> 32 != mine >> 32 || theirs == mine) continue;
    Record seen{};
    seen.call = static_cast<Word>(mine >> 32), seen.peer = static_cast<Word>(p);
    seen.goal = static_cast<Word>(mine), seen.seen = static_cast<Word>(theirs);
    say_and_raise(describe(Reason::kOtherCall, rank(), seen));
    return true;
  }
  return false;
}

// Said in words at once: the record is what waiters write, also those that have not heard of the end yet.
void Team::say_and_raise(std::string const& why) {
  std::lock_guard lock(saying_);  // a call and the watcher both may
  if (load_acquire(&control(rank()).abort) != 0) return;
  char* const said = control(rank()).said;
  said[why.copy(said, sizeof(Control::said) - 1)] = '\0';
  raise_abort(host_watch(0), kSaid);
}

void Team::raise_gone(int peer) {
  Record gone{};
  gone.peer = static_cast<Word>(peer);
  say_and_raise(describe(Reason::kPeerGone, rank(), gone));
}

void Team::fail() { raise_abort(host_watch(0), Reason::kFailed); }

void Team::check() const {
  Word const verdict = load_acquire(&control(rank()).abort);
  if (verdict != 0) throw Error(ErrorKind::kTimeout, describe(verdict));
}

std::string Team::describe(Word verdict) const {
  int const raiser = static_cast<int>(verdict & 0xff) - 1;
  Reason const reason{verdict >> 8};
  return reason == kSaid ? control(raiser).said : describe(reason, raiser, control(raiser).record);
}

std::string Team::describe(Reason reason, int raiser, Record& r) const {
  auto field = [](Word& word) { return load_acquire(&word); };
  switch (reason) {
    case Reason::kTimeout:
      return fmt::format(
          "rank {} waited {:.1f} s for {} from rank {} (call {}, row {}): its word holds {:#x} and needs {:#x}{}; "
          "every "
          "rank has stopped, make a new world",
          raiser, field(r.since_ms) / 1000.0, flux::describe(static_cast<Awaited>(field(r.what))), field(r.peer),
          field(r.call), field(r.row), field(r.seen), field(r.goal), chain_of_waits(raiser));
    case Reason::kPeerGone:
      return fmt::format(
          "rank {} is gone (its process ended or left the world) while rank {} counted on it; every rank has "
          "stopped, make a new world without it",
          field(r.peer), raiser);
    case Reason::kOtherCall:
      return fmt::format(
          "rank {} and rank {} make different calls at number {}: digest {:#x} against {:#x}; every rank must "
          "call the same operators in the same order with the same sizes and plan",
          raiser, field(r.peer), field(r.call), field(r.goal), field(r.seen));
    case Reason::kFailed: return fmt::format("rank {} failed and ended the world; see its own message", raiser);
    case Reason::kNone: break;
  }
  return fmt::format("the world was ended for reason {:#x}", static_cast<Word>(reason));
}

// What a rank of this node waits for; nothing, if it does not.
std::string Team::wait_of(int rank) const {
  Record& r = control(rank).record;
  auto const what = static_cast<Awaited>(load_acquire(&r.what));
  if (what == Awaited::kNothing) return {};
  return fmt::format("; rank {} itself waited for {} from rank {}", rank, flux::describe(what), load_acquire(&r.peer));
}

// Who kept the awaited rank from coming, and who that one: the last of the chain is the one to look at.
std::string Team::chain_of_waits(int raiser) const {
  std::string chain;
  int at = static_cast<int>(load_acquire(&control(raiser).record.peer));
  for (int steps = 1; steps < size() && at != raiser && nodes_.share_memory(at, rank()); ++steps) {
    std::string const wait = wait_of(at);
    if (wait.empty()) break;
    chain += wait;
    at = static_cast<int>(load_acquire(&control(at).record.peer));
  }
  if (!nodes_.share_memory(at, rank()))
    chain += fmt::format("; rank {} is on another node, whose ranks say whom they waited for", at);
  return chain;
}

void Team::watch_peers() {
  std::unique_lock lock(mutex_);
  for (int round = 0; !wake_.wait_for(lock, std::chrono::milliseconds(20), [&] { return stop_; }); ++round)
    if (!look_at_peers(round)) return;
}

// Whoever raises the abort word looks once more: what ends with the world is ended then.
bool Team::look_at_peers(int round) {
  if (auto const trouble = gpu_ ? gpu_->trouble(options_.limit_seconds) : std::string(); !trouble.empty())
    say_and_raise(fmt::format("rank {} {}; every rank has stopped, make a new world", rank(), trouble));
  if (Word const verdict = load_acquire(&control(rank()).abort); verdict != 0) {
    if (gpu_) gpu_->end();
    if (rails_) rails_->end(describe(verdict));
    return false;
  }
  if (hears_of_an_end()) return true;  // which has raised our abort word
  for (int lane = 0; lane < kLanes; ++lane)
    if (calls_[lane].load() != 0 && sees_other_call(lane)) return true;
  Record& record = control(rank()).record;
  bool const look = kind_ == MemoryKind::kSharedMemory && round % 5 == 0;
  for (int p : neighbours()) {
    if (!look || p == rank()) continue;
    bool const left = load_acquire(&control(p).left) != 0;
    bool const missed = load_acquire(&record.what) != 0 && load_acquire(&record.peer) == static_cast<Word>(p);
    if (left) {
      // Its last words may stand and not have been read yet: only a look after we saw it leave is in vain.
      Word const since_ms = missed ? load_acquire(&record.since_ms) : 0, before_ms = left_since_ms_[p];
      left_since_ms_[p] = since_ms;
      if (before_ms == 0 || since_ms <= before_ms) continue;
    } else if (!process_is_gone(control(p).pid)) {
      continue;
    }
    raise_gone(p);
    return true;
  }
  warn_of_long_wait();
  return true;
}

// Each rank hears its peers on other nodes; whoever hears first tells its node.
bool Team::hears_of_an_end() {
  auto const ending = rails_ ? rails_->news() : std::nullopt;
  if (!ending) return false;
  if (ending->said.empty()) {
    raise_gone(ending->peer);
  } else {
    std::string why = ending->said;  // and whom this node's ranks waited for meanwhile
    for (int p : neighbours()) why += wait_of(p);
    say_and_raise(why);
  }
  return true;
}

void Team::warn_of_long_wait() {
  Record& r = control(rank()).record;
  Word const what = load_acquire(&r.what), since_ms = load_acquire(&r.since_ms);
  if (what == 0 || since_ms < options_.warn_seconds * 1000) return;
  std::string const wait = fmt::format("{} from rank {} (call {})", flux::describe(static_cast<Awaited>(what)),
                                       load_acquire(&r.peer), load_acquire(&r.call));
  if (wait == warned_) return;
  warned_ = wait;
  fmt::print(stderr, "flux: rank {} has waited {:.0f} s for {}; it gives up at {:.0f} s\n", rank(), since_ms / 1000.0,
             wait, options_.limit_seconds);
}

}  // namespace flux
