#include "bench/gemm/collectives.h"

#include <fmt/format.h>

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

Collectives::~Collectives() = default;

void Collectives::add(std::string name, Exchange& exchange, Exchange::By by, Tensor const& out) {
  void* const partials = exchange.gathers() ? nullptr : exchange.rows();
  auto run = [&exchange, by, out](Stream stream) { exchange.run(by, out, stream); };
  ways_.push_back({std::move(name), run, partials, exchange.sent_bytes()});
}

Collectives::Collectives(World& world, Subject const& subject)
    : exchange_(std::make_unique<Exchange>(world, subject.p, subject.own_x())) {
  GemmProblem const& p = subject.p;
  Tensor const out = subject.own_out();
  using By = Exchange::By;
  if (p.op == "gemm_ar") {
    add("one shot by copies", *exchange_, By::kCopies, out);
    add("one shot by a kernel", *exchange_, By::kKernel, out);
    GemmProblem half = p;
    half.op = "gemm_rs";
    sums_ = std::make_unique<Buffer>(std::max<int64_t>(subject.own.size, 1) * p.n * 2);
    Tensor const sums = matrix(sums_->data(), p.dtype, subject.own.size, p.n);
    scattered_ = std::make_unique<Exchange>(world, half, Tensor{});
    half.op = "ag_gemm", half.k = p.n;
    gathered_ = std::make_unique<Exchange>(world, half, sums);
    for (auto const& [name, by] :
         {std::pair{"two shots by copies", By::kCopies}, {"two shots by a kernel", By::kKernel}})
      ways_.push_back({name,
                       [this, sums, by = by](Stream stream) {
                         scattered_->run(by, sums, stream);
                         gathered_->run(by, {}, stream);
                       },
                       scattered_->rows(), scattered_->sent_bytes() + gathered_->sent_bytes()});
    return;
  }
  if (subject.gathers()) {
    gather_ = std::make_unique<AllGatherGemm>(world, AllGatherGemm::Shape{p.m, p.k, p.dtype}, parse_plan("buffers=1"));
    auto run = [this, &subject](Stream stream) {
      gather_->run(subject.p.m, subject.own_x(), std::span<Linear const>{}, {}, stream);
    };
    ways_.push_back({"flux", run, nullptr, exchange_->sent_bytes()});
  } else {
    scatter_ = std::make_unique<ScatterAlone>(world, p.m, p.n, p.dtype);
    auto run = [this, out](Stream stream) { scatter_->run(out, stream); };
    ways_.push_back({"flux", run, scatter_->partials(), exchange_->sent_bytes()});
  }
  add("copies", *exchange_, By::kCopies, out);
  add("halves", *exchange_, By::kHalves, out);
  add("a kernel", *exchange_, By::kKernel, out);
}

}  // namespace flux::bench
