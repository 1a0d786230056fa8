// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/passes/estimates.h"

#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/compiler/testing/test_program.h"
#include "core/op/shape_scope.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

Status MatrixShape(ShapeScope& s) {
  s.set_output(0, Shape({2, 2}));
  return OkStatus();
}
Status VectorShape(ShapeScope& s) { return s.WithRank(0, 1).status(); }

// Ops whose shapes may contradict each other: Vector takes vectors only.
const Registry& ShapedOps() {
  static const Registry registry(
      {{.name = "_Feed",
        .outputs = {{"y", "T"}},
        .types = {{"T", kAllTypes}},
        .attrs = {{"index", Ints{}}},
        .shape = UnknownShape,
        .end = EndOp::kFeed},
       {.name = "Matrix", .outputs = {{"y", "float"}}, .shape = MatrixShape},
       {.name = "Vector", .inputs = {{"x", "float"}}, .shape = VectorShape}},
      {});
  return registry;
}

class EstimatesTest : public testing::Test {
 protected:
  Node* Add(Graph::NodeSpec spec) {
    const StatusOr<Node*> node = graph_.AddNode(std::move(spec));
    CHECK_OK(node.status());
    return *node;
  }
  StatusOr<CostTable> Estimate(std::vector<PartialShape> feed_shapes) {
    const std::vector<DeviceInfo> devices = TestCluster();
    const CompileOptions options{.feed_shapes = std::move(feed_shapes)};
    CompileReport report;
    PassContext context{.program = graph_,
                        .devices = devices,
                        .options = options,
                        .report = report,
                        .graph = &graph_};
    RETURN_IF_ERROR(EstimateCosts(context));
    EXPECT_EQ(context.costs.num_estimated(), graph_.max_id());
    return std::move(context.costs);
  }
  // Returns the estimated bytes of feed 1, which a Vector takes.
  double FeedBytes(std::vector<PartialShape> feed_shapes) {
    if (feed_ == nullptr) {
      feed_ =
          Add({.name = "x", .op = "_Feed", .attrs = {{"index", int64_t{1}}, {"T", DType::kFloat}}});
      Add({.name = "y", .op = "Vector", .inputs = {{feed_, 0}}});
    }
    const auto costs = Estimate(std::move(feed_shapes));
    CHECK_OK(costs.status());
    return costs->OutputBytes(*feed_, 0);
  }

  Graph graph_{ShapedOps()};
  Node* feed_ = nullptr;
};

TEST_F(EstimatesTest, FeedsHaveTheExpectedShapes) {
  EXPECT_EQ(FeedBytes({PartialShape({100}), PartialShape({8})}), 8 * sizeof(float));
}

TEST_F(EstimatesTest, AFeedWithoutAnExpectedShapeIsUnknown) {
  const double unknown = FeedBytes({});
  EXPECT_EQ(FeedBytes({PartialShape({8})}), unknown) << "the shape is of another feed";
  EXPECT_EQ(FeedBytes({PartialShape(), PartialShape()}), unknown);
}

// The expected shape does not fit the graph. The step must compile, because it may be fed a tensor
// of another shape.
TEST_F(EstimatesTest, ExpectedShapesThatDoNotFitAreNotUsed) {
  const double unknown = FeedBytes({});
  EXPECT_EQ(FeedBytes({PartialShape(), PartialShape({3, 3})}), unknown);
}

TEST_F(EstimatesTest, AGraphWhoseShapesContradictIsAnError) {
  Node* const matrix = Add({.name = "m", .op = "Matrix"});
  Add({.name = "y", .op = "Vector", .inputs = {{matrix, 0}}});
  EXPECT_FALSE(Estimate({}).ok());
}

}  // namespace
}  // namespace penstock
