// SPDX-License-Identifier: Apache-2.0
//
// Tests the shapes from which the pass "place" estimates times.
// core/compiler/placement/placer_test.cc tests the choice of devices.
#include <algorithm>

#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

class PlaceTest : public testing::Test {
 protected:
  // Returns the estimated time of the node "sum".
  double SumNanos(std::vector<PartialShape> feed_shapes) {
    TestProgram p;
    Node* const fed = p.Add("fed", "Ask");
    p.Add("sum", "Heavy", {{fed, 0}});
    p.options.feed_shapes = std::move(feed_shapes);
    p.options.predict = true;
    const auto compiled = p.Compile({"fed"}, {"sum"});
    CHECK_OK(compiled.status());
    const auto& runs = p.report.placement.runs;
    const auto sum =
        std::find_if(runs.begin(), runs.end(), [](const auto& run) { return run.node == "sum"; });
    CHECK(sum != runs.end());
    return sum->end_ns - sum->start_ns;
  }
};

TEST_F(PlaceTest, EstimatesBeginWithTheShapesOfFeeds) {
  const double unknown = SumNanos({});
  EXPECT_EQ(SumNanos({PartialShape()}), unknown);
  EXPECT_EQ(SumNanos({PartialShape({64, 64})}), unknown);
  EXPECT_GT(SumNanos({PartialShape({640, 640})}), 20 * unknown);
  EXPECT_LT(SumNanos({PartialShape({2, 2})}), unknown);
}

}  // namespace
}  // namespace penstock
