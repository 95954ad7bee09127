#include "bench/gemm/chunked.h"

#include <numeric>

namespace flux::bench {

Chunked::Chunked(Exchange& exchange, GemmProblem const& p, CublasLt& cublas, Tensor const& x, void const* weight,
                 std::mt19937& random, Stream stream)
    : p_(p), x_(x), exchange_(exchange) {
  Shards const& shards = exchange_.shards();
  int64_t const x_row = p.rank_k() * 2, out_row = p.rank_n() * 2;
  Buffer out(p.m * out_row), rows(p.m * x_row);
  must(cudaMemset(rows.data(), 0, rows.bytes()));
  must(cudaDeviceSynchronize());
  int64_t alignment = 256;  // of every shard
  for (int r = 1; r < shards.ranks; ++r)
    alignment = std::gcd(alignment, std::gcd(shards.begin(r) * x_row, shards.begin(r) * out_row));
  for (int r = 0; r < shards.ranks; ++r) {
    if (shards.size(r) == 0 || pieces_.contains(shards.size(r))) continue;
    GemmProblem piece = p;
    piece.m = shards.size(r), piece.epilogue = "none";
    pieces_[piece.m] = cublas
                           .fastest(piece, exchange_.gathers() ? rows.data() : x.data, weight, out.data(), 1, random,
                                    stream, static_cast<uint32_t>(alignment))
                           .at(0)
                           .multiply;
  }
}

void Chunked::run(void const* weight, Tensor const& out, Stream stream) {
  exchange_.gathers() ? gather(weight, out, stream) : scatter(weight, out, stream);
}

void Chunked::multiply(int shard, void const* x, void const* weight, void* out) const {
  int64_t const rows = exchange_.shards().size(shard);
  if (rows > 0) pieces_.at(rows)(x, weight, out);
}

// A shard is multiplied when it has come, while the next one comes. Copies in one stream, GEMMs in the other.
void Chunked::gather(void const* weight, Tensor const& out, Stream stream) {
  Exchange& e = exchange_;
  Shards const& shards = e.shards();
  auto out_at = [&](int shard) { return static_cast<char*>(out.data) + shards.begin(shard) * p_.rank_n() * 2; };
  Call const call = e.begin(stream);
  e.fork(stream);
  for (int i = 1; i < shards.ranks; ++i) e.send(call, i);
  multiply(e.rank(), x_.data, weight, out_at(e.rank()));
  for (int i = 1; i < shards.ranks; ++i) {
    int const source = e.source(i);
    e.await(call, i, stream);
    multiply(source, e.rows() + shards.begin(source) * p_.rank_k() * 2, weight, out_at(source));
  }
  e.finish(call, {}, stream);
}

// A piece goes to its owner while the next one is multiplied.
void Chunked::scatter(void const* weight, Tensor const& out, Stream stream) {
  Exchange& e = exchange_;
  Shards const& shards = e.shards();
  auto piece = [&](int shard) {
    multiply(shard, static_cast<char const*>(x_.data) + shards.begin(shard) * p_.rank_k() * 2, weight,
             e.rows() + shards.begin(shard) * p_.n * 2);
  };
  Call const call = e.begin(stream);
  for (int i = 1; i < shards.ranks; ++i) {
    piece(e.owner(i));
    e.fork(stream);
    e.send(call, i);
  }
  piece(e.rank());
  e.finish(call, out, stream);
}

}  // namespace flux::bench
