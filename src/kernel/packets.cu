#include "kernel/packets.h"

#include "engine/ptx/grids.h"
#include "kernel/row_team.h"

namespace flux {
namespace {

__device__ float2 widen(Word two, __nv_bfloat16) {
  return __bfloat1622float2(reinterpret_cast<__nv_bfloat162 const&>(two));
}
__device__ float2 widen(Word two, __half) { return __half22float2(reinterpret_cast<__half2 const&>(two)); }
__device__ Word narrow(float2 two, __nv_bfloat16) {
  __nv_bfloat162 const both = __float22bfloat162_rn(two);
  return reinterpret_cast<Word const&>(both);
}
__device__ Word narrow(float2 two, __half) {
  __half2 const both = __float22half2_rn(two);
  return reinterpret_cast<Word const&>(both);
}

/// The data of a packet, widened.
struct Six {
  float2 x[3] = {};
};
template <class T>
__device__ void add(Six& sum, Packet const& packet) {
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    float2 const term = widen(packet.data[i], T{});
    sum.x[i].x += term.x, sum.x[i].y += term.y;
  }
}

// Most of the time here is spent waiting, and code that is not repeated for each source fits where it is fetched from.
__device__ __noinline__ Packet await_at(Packet const* from, Word tag, Watch const& watch, Awaited what, int peer,
                                        int64_t row) {
  Packet packet = load_packet(from);
  if (!await_packet(from, packet, tag, watch, what, peer, row)) packet.tag = 0;
  return packet;
}

template <class T>
class Exchange {
 public:
  __device__ Exchange(PacketExchange const& s, int sharing)
      : s_(s),
        team_(sharing),
        rank_(s.watch.rank),
        mine_(s.layout.rows_of(rank_)),
        call_(number_of_call()),
        tag_(tag_of(call_, s.digest)),
        words_(s.out.columns / 2) {}

  /// Our partial sums, to whoever adds them up. In a mirror all peers get what is ours to add up: as many bytes.
  __device__ void send() const {
    PacketLayout const& layout = s_.layout;
    bool const to_all = layout.owners.ranks == 1 || s_.mirrored;
    Rows const rows = to_all ? mine_ : Rows{0, layout.owners.total};
    each_row(rows, [&](int64_t row) {
      int const owner = to_all ? rank_ : layout.owners.owner(row);
      if (!to_all && owner == rank_) return;
      int64_t const at = layout.partial(rank_, row - (to_all ? mine_.first : layout.owners.begin(owner)));
      each_packet([&](int64_t i) {
        Packet const packet = own(row, i);
        if (to_all)
          store_to_all(at + i, packet);
        else
          store_packet(half_of(owner) + at + i, packet);
      });
    });
  }

  /// The rows that are ours to add up, or ours as they are: to all, if all want them.
  __device__ void finish_own() const {
    PacketLayout const& layout = s_.layout;
    each_row(mine_, [&](int64_t row) {
      float squares = 0;
      each_packet([&](int64_t i) {
        Packet const y = layout.partials ? sum_at(row, i) : own(row - mine_.first, i);
        if (layout.rows) store_to_all(layout.whole(row) + i, y);
        squares += keep(row, i, y);
      });
      norm(row, squares);
    });
  }

  __device__ void take_others() const {
    PacketLayout const& layout = s_.layout;
    each_row({0, layout.owners.total}, [&](int64_t row) {
      int const owner = layout.owners.owner(row);
      if (owner == rank_) return;
      int64_t const of_mirror = mine_.first + min(row - layout.owners.begin(owner), mine_.count - 1);
      Packet const* const from =
          s_.mirrored ? half_of(owner) + layout.whole(of_mirror) : half_of(rank_) + layout.whole(row);
      float squares = 0;
      each_packet([&](int64_t i) {
        squares += keep(row, i, await_at(from + i, tag_, s_.watch, Awaited::kResult, owner, row));
      });
      norm(row, squares);
    });
  }

  /// With every peer, where rows do not tell of all.
  __device__ void greet() const {
    int const p = static_cast<int>(threadIdx.x);
    if (blockIdx.x > 0 || p >= s_.layout.ranks || p == rank_) return;
    store_packet(half_of(p) + s_.layout.greeting(rank_), {{}, tag_});
    Packet const* const from =
        s_.mirrored ? half_of(p) + s_.layout.greeting(rank_) : half_of(rank_) + s_.layout.greeting(p);
    await_at(from, tag_, s_.watch, Awaited::kCall, p, 0);
  }

  /// Once all of this block know the number of the call: the last block counts it, and clears a packet that no call may
  /// write for long.
  __device__ void count() const {
    if (threadIdx.x > 0 || count_up(s_.calls + 1) + 1 < gridDim.x) return;
    s_.calls[1] = 0, s_.calls[0] = call_ + 1;
    if (int64_t const at = packet_to_clear(call_, s_.half); !s_.layout.awaited(rank_, at))
      store_packet(half_of(rank_) + at, {});
  }

 private:
  template <class F>
  __device__ void each_row(Rows rows, F&& f) const {
    for (int64_t row = rows.first + team_.index; row < rows.end(); row += team_.count) f(row);
  }
  template <class F>
  __device__ void each_packet(F&& f) const {
    for (int64_t i = team_.first(); i < s_.layout.row_packets; i += team_.step()) f(i);
  }

  __device__ Word number_of_call() const {
    __shared__ Word call;
    if (threadIdx.x == 0) call = *const_cast<Word const volatile*>(s_.calls);
    __syncthreads();
    return call;
  }
  __device__ Packet own(int64_t row, int64_t i) const { return words_of(s_.own, row * s_.own_stride / 2, i); }

  __device__ Packet* half_of(int rank) const { return s_.packets.at(rank) + (call_ & 1) * s_.half; }
  __device__ void store_to_all(int64_t at, Packet const& packet) const {
    for (int i = 1; i < s_.layout.ranks; ++i) {
      int const to = rank_ + i < s_.layout.ranks ? rank_ + i : rank_ + i - s_.layout.ranks;
      store_packet(half_of(to) + at, packet);
    }
  }

  /// Packet `i` of a row that begins at word `first`.
  __device__ Packet words_of(void const* rows, int64_t first, int64_t i) const {
    Word const* const words = static_cast<Word const*>(rows) + first + 3 * i;
    Packet packet{{}, tag_};
#pragma unroll
    for (int j = 0; j < 3; ++j)
      if (3 * i + j < words_) packet.data[j] = words[j];
    return packet;
  }

  /// In rank order, whoever was first. The tag of the result is another one if a packet did not come.
  __device__ Packet sum_at(int64_t row, int64_t i) const {
    constexpr int kTogether = 8;  // loads on their way at a time
    PacketLayout const& layout = s_.layout;
    int64_t const local = row - mine_.first;
    auto from = [&](int source) {
      return s_.mirrored ? half_of(source) + layout.partial(rank_, local) + i
                         : half_of(rank_) + layout.partial(source, local) + i;
    };
    Six sum;
    bool ok = true;
    Packet bias{}, residual{};  // on their way before the first packet has come
    if (s_.bias) bias = words_of(s_.bias.data, 0, i);
    if (s_.residual) residual = words_of(s_.residual.data, (row - first_out()) * s_.residual.stride / 2, i);
    for (int first = 0; first < layout.ranks; first += kTogether) {
      Packet in[kTogether];
#pragma unroll
      for (int j = 0; j < kTogether; ++j)
        if (int const source = first + j; source < layout.ranks)
          in[j] = source == rank_ ? own(row, i) : load_packet(from(source));
#pragma unroll
      for (int j = 0; j < kTogether; ++j)
        if (int const source = first + j; source < layout.ranks) {
          if (in[j].tag != tag_) in[j] = await_at(from(source), tag_, s_.watch, Awaited::kPartial, source, row);
          ok = ok && in[j].tag == tag_;
          add<T>(sum, in[j]);
        }
    }
    if (s_.bias) add<T>(sum, bias);
    if (s_.residual) add<T>(sum, residual);
    Packet y{{}, ok ? tag_ : 0};
#pragma unroll
    for (int j = 0; j < 3; ++j) y.data[j] = narrow(sum.x[j], T{});
    return y;
  }

  /// The global row that `out` begins with.
  __device__ int64_t first_out() const { return s_.layout.rows ? 0 : mine_.first; }

  /// Writes six columns of y; returns the sum of their squares.
  __device__ float keep(int64_t row, int64_t i, Packet const& y) const {
    float squares = 0;
    write(s_.out, row, i, [&](int j) {
      float const nan = __int_as_float(0x7fffffff);
      Word const word = y.tag == tag_ ? y.data[j] : narrow({nan, nan}, T{});
      float2 const x = widen(word, T{});
      squares += x.x * x.x + x.y * x.y;
      return word;
    });
    return squares;
  }

  /// From the row of y that these same threads have just written.
  __device__ void norm(int64_t row, float squares) const {
    if (!s_.normed) return;
    float const scale = rsqrtf(add_over_team(squares, team_) / s_.out.columns + s_.norm_epsilon);
    each_packet([&](int64_t i) {
      Packet const y = words_of(s_.out.data, (row - first_out()) * s_.out.stride / 2, i),
                   g = words_of(s_.norm_weight.data, 0, i);
      write(s_.normed, row, i, [&](int j) {
        float2 const x = widen(y.data[j], T{}), gamma = widen(g.data[j], T{});
        return narrow({x.x * scale * gamma.x, x.y * scale * gamma.y}, T{});
      });
    });
  }

  template <class F>
  __device__ void write(Tensor const& t, int64_t row, int64_t i, F&& word) const {
    Word* const words = static_cast<Word*>(t.data) + (row - first_out()) * t.stride / 2 + 3 * i;
#pragma unroll
    for (int j = 0; j < 3; ++j)
      if (3 * i + j < words_) words[j] = word(j);
  }

  PacketExchange const& s_;
  RowTeam const team_;
  int const rank_;
  Rows const mine_;
  Word const call_, tag_;
  int64_t const words_;  // of a row
};

template <class T>
__global__ void __launch_bounds__(kTeamThreads, 2) exchange(__grid_constant__ PacketExchange const s, int sharing) {
  if (!s.layout.partials) ptx::let_next_grid_begin();
  Exchange<T> const exchange(s, sharing);
  if (s.layout.partials) exchange.send();
  exchange.count();
  exchange.finish_own();
  if (s.layout.rows) exchange.take_others();
  if (s.layout.greets()) exchange.greet();
}

}  // namespace

void prepare_packets() {
  cudaFuncAttributes attributes;
  check_cuda(cudaFuncGetAttributes(&attributes, exchange<__nv_bfloat16>), "loading the exchange of packets");
  check_cuda(cudaFuncGetAttributes(&attributes, exchange<__half>), "loading the exchange of packets");
}

void exchange_packets(PacketExchange const& s, int blocks, CUstream_st* stream) {
  launch_row_teams(exchange<__nv_bfloat16>, exchange<__half>, s, s.layout.row_packets, s.layout.owners.total, blocks,
                   stream);
}

}  // namespace flux
