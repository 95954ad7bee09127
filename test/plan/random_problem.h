#pragma once
// Problems, plans and machines at random, the same in every run.
#include <random>

#include "plan/resolve.h"

namespace flux {

class RandomProblems {
 public:
  explicit RandomProblems(unsigned seed) : random_(seed) {}

  int64_t below(int64_t bound) { return std::uniform_int_distribution<int64_t>(0, bound - 1)(random_); }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int64_t>(list.size()))];
  }

  Problem problem() {
    Problem p;
    p.op = one_of({Op::kAllGatherGemm, Op::kGemmReduceScatter, Op::kGemmAllReduce});
    p.ranks = static_cast<int>(1 + below(12));
    for (int nodes : {4, 3, 2})
      if (p.ranks % nodes == 0 && below(3) == 0) p.nodes = nodes;
    p.m = below(2) ? 1 + below(300) : 1 + below(4000);
    p.n = 8 * (1 + below(1500)), p.k = 8 * (1 + below(1500));
    return p;
  }
  Plan plan() {
    Plan p;
    p.fused = below(5) > 0, p.in_order = below(4) > 0;
    p.transport = one_of({Transport::kPush, Transport::kPush, Transport::kPull, Transport::kRemote});
    p.route = one_of({RouteKind::kAuto, RouteKind::kPush, RouteKind::kStage, RouteKind::kSum, RouteKind::kRing});
    p.comm_rows = one_of<int64_t>({0, 0, 64, 300, kWholeShard});
    p.copy_blocks = one_of({kChosenCopies, kChosenCopies, 0, 4, 8});
    p.path = below(6) > 0 ? Path::kDirect : Path::kRing;
    p.k_slices = one_of({1, 1, 3});
    p.band = one_of({0, 1, 5});
    p.shots = one_of({Shots::kOneShot, Shots::kTwoShot});
    p.store = one_of({StoreKind::kTensor, StoreKind::kBulk, StoreKind::kVector});
    return p;
  }
  Machine const& machine() {
    return named_machines()[static_cast<size_t>(below(static_cast<int64_t>(named_machines().size())))];
  }

 private:
  std::mt19937 random_;
};

}  // namespace flux
