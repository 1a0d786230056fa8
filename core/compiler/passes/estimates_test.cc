// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/passes/estimates.h"

#include <utility>
#include <vector>

#include "core/compiler/testing/world.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// The sum of a feed of unknown shape and a vector of eight floats.
struct FedWorld : World {
  FedWorld() {
    feed = Add("x", "_Feed", {}, {.attrs = {{"index", int64_t{1}}, {"T", DType::kFloat}}});
    Node* const w = Constant("w", std::vector<float>(8, 1));
    Add("y", "Sum2", {{feed, 0}, {w, 0}});
  }
  // Returns the estimated bytes of the feed, whose index is 1.
  double FeedBytes(std::vector<PartialShape> feed_shapes) {
    options.feed_shapes = std::move(feed_shapes);
    PassContext context{.program = graph,
                        .devices = devices,
                        .options = options,
                        .report = report,
                        .graph = &graph};
    const Status status = EstimateCosts(context);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(context.costs.num_estimated(), graph.max_id());
    return context.costs.OutputBytes(*feed, 0);
  }
  Node* feed = nullptr;
};

TEST(EstimatesTest, FeedsHaveTheExpectedShapes) {
  FedWorld w;
  EXPECT_EQ(w.FeedBytes({PartialShape({100}), PartialShape({8})}), 8 * sizeof(float));
}

TEST(EstimatesTest, AFeedWithoutAnExpectedShapeIsUnknown) {
  FedWorld w;
  const double unknown = w.FeedBytes({});
  EXPECT_EQ(w.FeedBytes({PartialShape({8})}), unknown) << "the shape is of another feed";
  EXPECT_EQ(w.FeedBytes({PartialShape(), PartialShape()}), unknown);
}

// The step fails if it is fed such a tensor; it may be fed another one.
TEST(EstimatesTest, ExpectedShapesThatDoNotFitAreNotUsed) {
  FedWorld w;
  const double unknown = w.FeedBytes({});
  EXPECT_EQ(w.FeedBytes({PartialShape(), PartialShape({3})}), unknown);
}

TEST(EstimatesTest, AGraphWhoseShapesContradictIsAnError) {
  World w;
  Node* const two = w.Constant("two", {1, 2});
  Node* const three = w.Constant("three", {1, 2, 3});
  w.Add("sum", "Sum2", {{two, 0}, {three, 0}});
  PassContext context{.program = w.graph,
                      .devices = w.devices,
                      .options = w.options,
                      .report = w.report,
                      .graph = &w.graph};
  EXPECT_FALSE(EstimateCosts(context).ok());
}

}  // namespace
}  // namespace penstock
