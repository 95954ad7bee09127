#include "report/budget.h"

#include <gtest/gtest.h>

#include "error_of.h"

namespace flux {
namespace {

void add(Timeline& line, SpanKind kind, int64_t begin_us, int64_t end_us) {
  Span span;
  span.kind = kind, span.begin_ns = begin_us * 1000, span.end_ns = end_us * 1000;
  line.spans.push_back(span);
}

Timeline call() {
  Timeline line;
  add(line, SpanKind::kStep, 1000, 1200);
  add(line, SpanKind::kMaths, 1010, 1080);
  add(line, SpanKind::kMaths, 1080, 1150);
  add(line, SpanKind::kStore, 1150, 1155);
  add(line, SpanKind::kCopy, 1005, 1100);
  add(line, SpanKind::kCopy, 1100, 1170);
  return line;
}

TEST(Budget, OfALongerGemmAddsUpToTheCall) {
  BudgetTimes const times{120, 100, 126, 130};
  Budget const b = budget_of(call(), times).value();
  EXPECT_DOUBLE_EQ(b.total_us, 200);
  EXPECT_DOUBLE_EQ(b.gemm_us, 6);
  EXPECT_DOUBLE_EQ(b.fusion_us, 4);
  EXPECT_DOUBLE_EQ(b.head_us, 10);
  EXPECT_DOUBLE_EQ(b.traffic_us, 15);
  EXPECT_DOUBLE_EQ(b.sum_us, 0);
  EXPECT_DOUBLE_EQ(b.tail_us, 45);
  EXPECT_DOUBLE_EQ(times.gemm_us + b.gemm_us + b.fusion_us + b.head_us + b.traffic_us + b.sum_us + b.tail_us,
                   b.total_us);
}

TEST(Budget, OfLongerCommunicationAddsUpWithoutTheGemm) {
  Timeline line = call();
  add(line, SpanKind::kSum, 1090, 1190);
  BudgetTimes const times{120, 150, 126, 130};
  Budget const b = budget_of(line, times).value();
  EXPECT_DOUBLE_EQ(b.head_us, 5);
  EXPECT_DOUBLE_EQ(b.traffic_us, 15);
  EXPECT_DOUBLE_EQ(b.sum_us, 20);
  EXPECT_DOUBLE_EQ(b.tail_us, 10);
  EXPECT_DOUBLE_EQ(times.comm_us + b.head_us + b.traffic_us + b.sum_us + b.tail_us, b.total_us);
  ResultRow row;
  set_budget(row, b);
  EXPECT_EQ(row.budget_sum_us, 20);
  EXPECT_EQ(row.budget_gemm_us, 6);
}

TEST(Budget, NeedsWhatItReads) {
  Timeline line = call();
  std::erase_if(line.spans, [](Span const& span) { return span.kind == SpanKind::kCopy; });
  EXPECT_FALSE(budget_of(line, {100, 120, 100, 100})) << "no copies to read";
  EXPECT_TRUE(budget_of(line, {120, 100, 120, 120}));
  EXPECT_FALSE(budget_of({}, {120, 100, 120, 120}));
  EXPECT_DOUBLE_EQ(call_us(line), 200);
  EXPECT_HAS(invalid([] { call_us({}); }), "whole call");
}

}  // namespace
}  // namespace flux
