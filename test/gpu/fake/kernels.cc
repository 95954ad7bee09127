// The kernels, played by the host engine: a launch has ended when it returns. What the GPU's own code decides (which
// copies, which tiles, whose words) is the real one; what a kernel does with it is the slow reference.
#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "engine/host/element.h"
#include "engine/host/run.h"
#include "engine/host/sum.h"
#include "gpu/fake/runtime.h"
#include "kernel/call.h"
#include "kernel/copy_rows.h"
#include "kernel/gemm.h"
#include "kernel/packets.h"
#include "kernel/slot_sum.h"

namespace flux {
namespace {

// A GEMM that waits is enqueued before the copies that it waits for. It runs when something comes after it: in its
// stream, or by a word or an event that is waited for.
struct Gemms {
  CUstream_st* stream = nullptr;
  std::vector<std::function<void()>> enqueued;
};
thread_local Gemms gemms;

template <class Act>
bool each_peer(CallWords const& call, Act&& act) {
  for (int p = 0; p < call.watch.ranks; ++p)
    if (p != call.watch.rank && call.begun.at(p) && !act(p)) return false;
  return true;
}

bool wait_for(CallWords const& call, Inputs const& inputs) {
  bool ok = true;
  if (inputs.readable)
    ok = each_peer(call,
                   [&](int p) { return await(inputs.readable + p, call.digest, call.watch, Awaited::kRows, p, 0); });
  if (!inputs.arrival.words) return ok;
  Shards const& shards = inputs.arrival.layout.shards;
  for (int p = 0; ok && p < shards.ranks; ++p)
    for (int s = 0; ok && shards.size(p) > 0 && s < inputs.arrival.slices().ranks; ++s)
      ok = inputs.arrival.wait({shards.begin(p), shards.size(p)}, s);
  return ok;
}

void after_gemms(CUstream_st* stream) {
  if (stream == gemms.stream) test::run_gemms();
}

void poison(Tensor const& t, int64_t row, int64_t rows) {
  std::vector<float> const nan(t.columns, std::numeric_limits<float>::quiet_NaN());
  for (int64_t i = 0; i < rows; ++i) host::narrow(nan.data(), t.row(row + i), t.dtype, t.columns);
}

}  // namespace

// ---- src/kernel/call.cu ----

void prepare_calls() {}

void enqueue_begin(CallWords const& call, CUstream_st* stream) {
  after_gemms(stream);
  int const rank = call.watch.rank;
  each_peer(call, [&](int p) {
    Word* const credit = call.credits.at(rank) + p;
    if (!await(credit, kGranted, call.watch, Awaited::kCredit, p, 0)) return false;
    store_release(credit, 0);
    store_release(call.begun.at(p) + rank, call.digest);
    return true;
  });
}

void enqueue_readable(CallWords const& call, Symmetric<Word> const& readable, CUstream_st*) {
  each_peer(call, [&](int p) { return store_release(readable.at(p) + call.watch.rank, call.digest), true; });
}

void enqueue_wait(CallWords const& call, Inputs const& inputs, CUstream_st* stream) {
  after_gemms(stream), wait_for(call, inputs);
}

void enqueue_await(Word const* word, Word goal, Watch const& watch, Awaited what, int peer, int64_t row, CUstream_st*) {
  await(word, goal, watch, what, peer, row);
}

void enqueue_tell(Word* words, int count, Word goal, Watch const& watch, CUstream_st*) {
  for (int i = 0; i < count && !aborted(watch) && !aborted_by_host(watch); ++i) store_release(words + i, goal);
}

void enqueue_finish(CallWords const& call, Inputs const& inputs, Word* words, int64_t count, CUstream_st* stream) {
  after_gemms(stream);
  int const rank = call.watch.rank;
  Word* const begun = call.begun.at(rank);
  bool const ok = wait_for(call, inputs) && each_peer(call, [&](int p) {
                    return await(begun + p, call.digest, call.watch, Awaited::kCall, p, 0);
                  });
  if (!ok || aborted(call.watch)) return;
  std::fill_n(begun, call.watch.ranks, 0), std::fill_n(words, count, 0);
  each_peer(call, [&](int p) { return store_release(call.credits.at(p) + rank, kGranted), true; });
}

void enqueue_clock(int64_t* to, CUstream_st*) { *to = now_ns(); }

// ---- src/kernel/copy_rows.cu ----

void prepare_copies_by_blocks() {}

void copy_by_blocks(std::span<BlockCopies const> lists, int, DType dtype, Watch const& watch, CUstream_st* stream) {
  after_gemms(stream);
  for (BlockCopies const& list : lists)
    for (Transfer const& t : list.transfers) {
      if (t.after && !await(t.after, t.goal, watch, t.awaited, t.awaited_from, t.row)) break;
      if (t.add_after && !await(t.add_after, t.goal, watch, t.awaited, t.awaited_from, t.row)) break;
      int64_t const columns = t.row_bytes / size_of(dtype);
      std::vector<float> ours(columns), sum(columns);
      for (int64_t i = 0; t.to && i < t.rows; ++i) {
        std::byte* const to = t.to + i * t.to_stride;
        std::memmove(to, t.from + i * t.from_stride, t.row_bytes);
        if (!t.add) continue;
        host::widen(to, dtype, ours.data(), columns);
        host::widen(t.add + i * t.to_stride, dtype, sum.data(), columns);
        for (int64_t j = 0; j < columns; ++j) sum[j] += ours[j];
        host::narrow(sum.data(), to, dtype, columns);
      }
      if (t.clear_after) store_release(t.after, 0);
      if (t.set) store_release(t.set, t.goal);
    }
}

// ---- src/kernel/slot_sum.cu ----

void prepare_slot_sum() {}

void sum_slots(SlotSum const& s, int, CUstream_st* stream) {
  after_gemms(stream);
  SumEpilogue epilogue;
  epilogue.bias = s.bias, epilogue.residual = s.residual;
  epilogue.norm_weight = s.norm_weight, epilogue.normed = s.normed, epilogue.norm_epsilon = s.norm_epsilon;
  std::vector<Tensor> slots;
  for (int part = 0; part < s.parts; ++part) {
    Tensor slot = matrix(const_cast<void*>(s.slots), s.out.dtype, s.out.rows, s.out.columns);
    slot.data = part == s.own_part ? const_cast<void*>(s.own) : slot.row(part * s.slot_rows);
    slots.push_back(slot);
  }
  for (int b = s.first_band; s.out.columns > 0 && b < std::min(s.bands.count(s.owner), s.end_band); ++b) {
    Place const band = s.bands.place(s.owner, b);
    bool ok = !s.watch.abort.at(s.watch.rank) || !aborted(s.watch);
    for (int source = 0; ok && s.words && source < s.sources; ++source)
      ok = await(s.words + s.bands.index(source, b), s.goal, s.watch, Awaited::kPartial, s.whose[source], band.row);
    if (ok)
      host::sum_rows(slots, band.row, band.rows, s.out, epilogue);
    else
      poison(s.out, band.row, band.rows);
  }
}

// ---- src/kernel/packets.cu ----

namespace {

struct Packets {
  PacketExchange const& s;
  int rank = s.watch.rank;
  Rows mine = s.layout.rows_of(rank);
  Word tag = tag_of(s.calls[0], s.digest);
  int64_t row_bytes = s.out.columns * size_of(s.out.dtype);

  Packet* half_of(int r) const { return s.packets.at(r) + (s.calls[0] & 1) * s.half; }
  void send(std::byte const* row, int to, int64_t at) const {
    for (int64_t i = 0; i < s.layout.row_packets; ++i) {
      Packet packet{{}, tag};
      std::memcpy(packet.data, row + i * kPacketBytes, std::min<int64_t>(kPacketBytes, row_bytes - i * kPacketBytes));
      store_packet(half_of(to) + at + i, packet);
    }
  }
  void send_to_all(std::byte const* row, int64_t at) const {
    for (int r = 0; r < s.layout.ranks; ++r)
      if (r != rank) send(row, r, at);
  }
  bool take(std::byte* row, Packet const* from, Awaited what, int peer, int64_t at) const {
    for (int64_t i = 0; i < s.layout.row_packets; ++i) {
      Packet packet = load_packet(from + i);
      if (!await_packet(from + i, packet, tag, s.watch, what, peer, at)) return false;
      std::memcpy(row + i * kPacketBytes, packet.data, std::min<int64_t>(kPacketBytes, row_bytes - i * kPacketBytes));
    }
    return true;
  }
};

Tensor row_of(Tensor t, int64_t row) {
  t.data = t.row(row), t.rows = 1;
  return t;
}
std::byte* bytes_of(Tensor const& t, int64_t row) { return static_cast<std::byte*>(t.row(row)); }

}  // namespace

void prepare_packets() {}

void exchange_packets(PacketExchange const& s, int, CUstream_st* stream) {
  after_gemms(stream);
  Packets const p{s};
  PacketLayout const& layout = s.layout;
  DType const dtype = s.out.dtype;
  int64_t const n = s.out.columns, m = layout.owners.total, first = layout.rows ? 0 : p.mine.first;
  Tensor own = matrix(const_cast<void*>(s.own), dtype, layout.partials ? m : p.mine.count, n);
  own.stride = s.own_stride;
  bool const to_owner = layout.owners.ranks > 1 && !s.mirrored;
  for (int64_t row = 0; layout.partials && row < m; ++row) {
    int const owner = layout.owners.owner(row);
    if (to_owner && owner != p.rank)
      p.send(bytes_of(own, row), owner, layout.partial(p.rank, row - layout.owners.begin(owner)));
    else if (!to_owner && row >= p.mine.first && row < p.mine.end())
      p.send_to_all(bytes_of(own, row), layout.partial(p.rank, row - p.mine.first));
  }
  SumEpilogue sums, norm;
  sums.bias = s.bias;
  norm.norm_weight = s.norm_weight, norm.norm_epsilon = s.norm_epsilon;
  auto finish = [&](int64_t row, bool ok) {
    if (!ok) return poison(s.out, row - first, 1);
    if (!s.normed) return;
    Tensor const y = row_of(s.out, row - first);
    norm.normed = row_of(s.normed, row - first);
    host::sum_rows(std::span(&y, 1), 0, 1, y, norm);
  };
  std::vector<std::byte> came(layout.ranks * p.row_bytes);
  for (int64_t local = 0; local < p.mine.count; ++local) {
    int64_t const row = p.mine.first + local;
    Tensor const y = row_of(s.out, row - first);
    std::vector<Tensor> slots;
    bool ok = !aborted(s.watch);
    for (int source = 0; layout.partials && source < layout.ranks; ++source) {
      slots.push_back(matrix(came.data() + source * p.row_bytes, dtype, 1, n));
      if (source == p.rank) slots.back().data = own.row(row);
      Packet const* const from = s.mirrored ? p.half_of(source) + layout.partial(p.rank, local)
                                            : p.half_of(p.rank) + layout.partial(source, local);
      if (source != p.rank) ok = ok && p.take(bytes_of(slots.back(), 0), from, Awaited::kPartial, source, row);
    }
    if (s.residual) sums.residual = row_of(s.residual, row - first);
    if (ok && layout.partials)
      host::sum_rows(slots, 0, 1, y, sums);
    else if (ok)  // bit for bit: bytes of int8 may look like NaN
      std::memcpy(bytes_of(y, 0), bytes_of(own, local), p.row_bytes);
    if (ok && layout.rows) p.send_to_all(bytes_of(y, 0), layout.whole(row));
    finish(row, ok);
  }
  for (int64_t row = 0; layout.rows && row < m; ++row) {
    int const owner = layout.owners.owner(row);
    if (owner == p.rank) continue;
    int64_t const theirs =
        s.mirrored ? p.mine.first + std::min(row - layout.owners.begin(owner), p.mine.count - 1) : row;
    Packet const* const from = p.half_of(s.mirrored ? owner : p.rank) + layout.whole(theirs);
    finish(row, p.take(bytes_of(s.out, row), from, Awaited::kResult, owner, row));
  }
  for (int r = 0; layout.greets() && r < layout.ranks; ++r)
    if (r != p.rank) store_packet(p.half_of(r) + layout.greeting(p.rank), {{}, p.tag});
  for (int r = 0; layout.greets() && r < layout.ranks; ++r) {
    if (r == p.rank) continue;
    Packet const* const from =
        s.mirrored ? p.half_of(r) + layout.greeting(p.rank) : p.half_of(p.rank) + layout.greeting(r);
    Packet packet = load_packet(from);
    await_packet(from, packet, p.tag, s.watch, Awaited::kCall, r, 0);
  }
  if (int64_t const at = packet_to_clear(s.calls[0], s.half); !layout.awaited(p.rank, at))
    store_packet(p.half_of(p.rank) + at, {});
  ++s.calls[0];
}

}  // namespace flux

// ---- src/kernel/gemm.cu ----

namespace flux {

void prepare_gemm(TileRow const&, DType, WeightLayout) {}
int blocks_of(GemmLaunch const&) { return 0; }  // none that could be stamped

void multiply(GemmLaunch const& l) {
  host::Launch h;
  Linear layer;
  layer.weight = l.weight, layer.bias = l.bias, layer.layout = l.layout;
  layer.activation = l.activation, layer.gated = l.gated, layer.scales = l.scales;
  layer.out = matrix(nullptr, result_of(l.weight.dtype), 0, l.columns());
  layer.out.stride = l.c_stride;
  h.set(layer, 0);
  for (int r = 0; r < kMaxRanks; ++r) {
    h.a.base[r] = static_cast<std::byte*>(const_cast<void*>(l.a.base[r]));
    h.c.base[r] = static_cast<std::byte*>(l.c.base[r]);
  }
  h.a_stride = l.a_stride;
  h.block_m = l.tile.tile_m, h.block_n = l.gated ? l.tile.tile_n / 2 : l.tile.tile_n;
  AnyRoute route = l.route;
  route.visit([&](auto const& r) {  // a cluster counts once here
    if constexpr (requires { r.out; }) const_cast<int&>(r.out.tiles_n) /= l.tile.cluster;
  });
  host::Workers worker(1);
  host::run_tiles(worker, h, l.order, l.gate, route, nullptr);
}
void enqueue_gemm(GemmLaunch const& l, CUstream_st* stream) {
  if (!l.gate.waits()) return multiply(l);
  if (stream != gemms.stream) test::run_gemms();
  gemms.stream = stream, gemms.enqueued.push_back([l] { multiply(l); });
}

}  // namespace flux

namespace flux::test {

void run_gemms(void* stream) {
  if (stream && stream != gemms.stream) return;
  for (auto const& gemm : std::exchange(gemms.enqueued, {})) gemm();
}

}  // namespace flux::test
