#include "bench/gemm/collectives.h"

#include <fmt/format.h>

#include "bench/gemm/graph_timing.h"
#include "op/gpu/packets.h"
#include "op/gpu/partial_sums.h"

namespace flux::bench {

/// The reduce-scatter of GEMM+RS alone: partial sums lie here, a row's meet at its owner.
class Collectives::ScatterAlone {
 public:
  ScatterAlone(World& world, int64_t m, int64_t n, DType dtype)
      : m_(m),
        channel_(world.team(), fmt::format("scatter m={} n={}", m, n),
                 PartialSums::words(m, world.size(), plan(), Way::kStage),
                 PartialSums::data_bytes(m, n, dtype, world.size(), plan(), Way::kStage), plan()),
        sums_(world.team(), m, n, 0, dtype, plan(), Way::kStage) {}
  void* partials() const { return sums_.staging(); }
  void run(Tensor const& out, Stream stream) {
    Call const call = channel_.begin("", stream);
    sums_.scatter(channel_, call, m_, out, {}, stream);
    channel_.finish(call, {}, stream);
  }

 private:
  using Way = PartialSums::Way;
  static Plan plan() { return parse_plan("fused=no buffers=1"); }
  int64_t m_;
  GpuChannel channel_;
  GpuPartialSums sums_;
};

/// The exchange alone of sums whose rows are few enough for packets.
class Collectives::PacketsAlone {
 public:
  PacketsAlone(World& world, Op op, int64_t m, int64_t n, DType dtype)
      : m_(m),
        channel_(world.team(), fmt::format("packets {} m={} n={}", name(op), m, n), 0, 0, plan(), nullptr,
                 GpuPackets::need(world.team(), {op, m, n, dtype}, plan())),
        packets_(world.team(), {op, m, n, dtype}, plan(), channel_.buffers()),
        used_(packets_.shots(m) != PacketShots::kNone) {}
  bool used() const { return used_; }
  void* partials() const { return packets_.rows(m_).data; }
  void run(Tensor const& out, Stream stream) {
    packets_.exchange(channel_.enter("", stream), m_, packets_.rows(m_), out, {}, stream);
    channel_.leave(stream);
  }

 private:
  static Plan plan() { return parse_plan("buffers=1"); }
  int64_t m_;
  GpuChannel channel_;
  GpuPackets packets_;
  bool used_;
};

Collectives::~Collectives() = default;

void Collectives::add(std::string name, Exchange& exchange, Exchange::By by, Tensor const& out) {
  void* const partials = exchange.gathers() ? nullptr : exchange.rows();
  auto run = [&exchange, by, out](Stream stream) { exchange.run(by, out, stream); };
  void const* const result = exchange.gathers() ? exchange.rows() : out.data;
  ways_.push_back({std::move(name), run, partials, result, exchange.sent_bytes()});
}

void Collectives::add_two_shots(World& world, GemmProblem half) {
  half.op = "gemm_rs";
  scattered_ = std::make_unique<Exchange>(world, half);
  half.op = "ag_gemm", half.k = half.n;
  gathered_ = std::make_unique<Exchange>(world, half);
  int64_t const own = gathered_->shards().size(world.rank());
  Tensor const sums = matrix(gathered_->own_rows(), half.dtype, own, half.n);
  int64_t const sent = scattered_->sent_bytes() + gathered_->sent_bytes();
  using By = Exchange::By;
  for (auto const& [name, by] : {std::pair{"two shots by copies", By::kCopies}, {"two shots by a kernel", By::kKernel}})
    ways_.push_back({name,
                     [this, sums, by = by](Stream stream) {
                       scattered_->run(by, sums, stream);
                       gathered_->run(by, {}, stream);
                     },
                     scattered_->rows(), gathered_->rows(), sent});
}

void Collectives::add_packets(World& world, GemmProblem const& p, Tensor const& out) {
  packets_ = std::make_unique<PacketsAlone>(world, parse_op(p.op), p.m, p.n, p.dtype);
  auto run = [this, out](Stream stream) { packets_->run(out, stream); };
  if (packets_->used()) ways_.push_back({"packets", run, packets_->partials(), out.data, exchange_->sent_bytes()});
}

// Our own rows lie in place, as NCCL has it best. The first call makes its connections.
void Collectives::add_nccl(Nccl& nccl, Subject const& subject) {
  GemmProblem const& p = subject.p;
  Shards const rows{p.m, p.tp, 1};
  int64_t const columns = subject.gathers() ? p.k : p.n, row_bytes = columns * 2;
  at_nccl_ = std::make_unique<Buffer>(p.m * row_bytes);
  auto* const all = static_cast<std::byte*>(at_nccl_->data());
  auto* const out = static_cast<std::byte*>(subject.own_out().data);
  must(cudaMemset(all, 0, at_nccl_->bytes()));
  int64_t sent = p.m * row_bytes * (p.tp - 1) / p.tp;
  std::function<void(Stream)> run;
  if (subject.gathers()) {
    must(cudaMemcpy(all + subject.own.begin * row_bytes, subject.own_x().data, subject.own_x().bytes(),
                    cudaMemcpyDeviceToDevice));
    run = [=, &nccl](Stream stream) { nccl.all_gather(all, rows, row_bytes, stream); };
  } else if (p.op == "gemm_rs") {
    run = [=, &nccl, dtype = p.dtype](Stream stream) { nccl.reduce_scatter(all, out, rows, columns, dtype, stream); };
  } else {
    sent *= 2;  // each way of a reduce-scatter and an all-gather; NCCL chooses
    run = [=, &nccl, dtype = p.dtype](Stream stream) {
      nccl.all_reduce(all, out, rows.total * columns, dtype, stream);
    };
  }
  must(cudaDeviceSynchronize());
  run(capture_stream());
  must(cudaStreamSynchronize(capture_stream()));
  nccl_ = static_cast<int>(ways_.size());
  void const* const result = subject.gathers() ? all : out;
  ways_.push_back({"nccl", run, subject.gathers() ? nullptr : all, result, sent});
}

Collectives::Collectives(World& world, Subject const& subject, Nccl* nccl)
    : exchange_(std::make_unique<Exchange>(world, subject.p, subject.gathers() ? subject.own_x() : Tensor{})) {
  GemmProblem const& p = subject.p;
  Tensor const out = subject.own_out();
  using By = Exchange::By;
  if (p.op == "gemm_ar") {
    add("one shot by copies", *exchange_, By::kCopies, out);
    add("one shot by a kernel", *exchange_, By::kKernel, out);
    add_two_shots(world, p);
    add_packets(world, p, out);
    if (nccl) add_nccl(*nccl, subject);
    return;
  }
  if (subject.gathers()) {
    gather_ = std::make_unique<AllGatherGemm>(world, AllGatherGemm::Shape{p.m, p.k, p.dtype}, parse_plan("buffers=1"));
    auto run = [this, &subject](Stream stream) {
      gather_->run(subject.p.m, subject.own_x(), std::span<Linear const>{}, {}, stream);
    };
    ways_.push_back({"flux", run, nullptr, nullptr, exchange_->sent_bytes()});
  } else {
    scatter_ = std::make_unique<ScatterAlone>(world, p.m, p.n, p.dtype);
    auto run = [this, out](Stream stream) { scatter_->run(out, stream); };
    ways_.push_back({"flux", run, scatter_->partials(), out.data, exchange_->sent_bytes()});
    add_packets(world, p, out);
  }
  add("copies", *exchange_, By::kCopies, out);
  add("halves", *exchange_, By::kHalves, out);
  add("a kernel", *exchange_, By::kKernel, out);
  if (nccl) add_nccl(*nccl, subject);
}

}  // namespace flux::bench
