// SPDX-License-Identifier: Apache-2.0
#include "core/op/gradient.h"

#include <algorithm>
#include <optional>

#include "core/op/shape_scope.h"
#include "core/op/testing/recording_sink.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

class GradientTest : public ::testing::Test {
 protected:
  GradientScope Scope(Outputs inputs, Outputs outputs, std::vector<Gradient> gradients) {
    return GradientScope(sink_, op_, attrs_, "node", std::move(inputs), std::move(outputs),
                         std::move(gradients));
  }
  std::string SumToInputsText(const PartialShape& x_shape, const PartialShape& y_shape) {
    sink_.nodes.clear();
    const Output x = sink_.Input(DType::kFloat, x_shape);  // %0
    const Output y = sink_.Input(DType::kFloat, y_shape);  // %1
    const Output z = sink_.Input(DType::kFloat);           // %2
    const Output d = sink_.Input(DType::kFloat);           // %3
    const auto gradients = SumToInputs(Scope({x, y}, {z}, {d}), d, d);
    return StrCat(sink_.Text(gradients[0].values), " | ", sink_.Text(gradients[1].values));
  }

  RecordingSink sink_;
  const OpDef op_ = {.name = "Op"};
  const Attrs attrs_ = {{"n", 3}};
};

TEST_F(GradientTest, Scope) {
  const Output x = sink_.Input(DType::kHalf), y = sink_.Input(DType::kHalf);
  const Output d = sink_.Input(DType::kHalf);
  const GradientScope g = Scope({x}, {y, y}, {Gradient(d), Gradient()});
  EXPECT_EQ(g.num_inputs(), 1);
  EXPECT_EQ(g.num_outputs(), 2);
  EXPECT_EQ(g.node_name(), "node");
  EXPECT_EQ(g.attr<int64_t>("n"), 3);
  EXPECT_EQ(g.dtype(), DType::kHalf);
  EXPECT_TRUE(g.has_dy(0));
  EXPECT_FALSE(g.has_dy(1));
  EXPECT_EQ(g.dy(0), d);
  EXPECT_EQ(sink_.Text(g.dy(1)), "ZerosLike(%1)");
  EXPECT_EQ(NoGradient(g).size(), 1);
  EXPECT_TRUE(NoGradient(g)[0].none());
  EXPECT_EQ(sink_.Text(g.Const(2.0f)), "[2]");
}

TEST_F(GradientTest, SparseGradientsBecomeDenseWhereAsked) {
  const Output values = sink_.Input(DType::kFloat), indices = sink_.Input(DType::kInt32);
  const Output shape = sink_.Input(DType::kInt32);
  const GradientScope g = Scope({values}, {values}, {Gradient(values, indices, shape)});
  EXPECT_TRUE(g.raw_dy().sparse());
  EXPECT_EQ(sink_.Text(g.dy()), "UnsortedSegmentSum(%0, %1, GatherV2(%2, [0], [0]))");
}

TEST_F(GradientTest, SumToInputsSparesWhatShapesTell) {
  EXPECT_EQ(SumToInputsText({2, 3}, {2, 3}), "%3 | %3");
  // For a bias, the gradient is one Sum, whatever the batch size is.
  EXPECT_EQ(SumToInputsText({-1, 3}, {3}), "%3 | Sum(%3, [0])");
  EXPECT_EQ(SumToInputsText({-1, -1}, PartialShape::Scalar()), "%3 | Sum(%3, [0 1])");
  EXPECT_EQ(SumToInputsText({2, 1}, {2, 3}), "Reshape(Sum(%3, [1]), [2 1]) | %3");
  EXPECT_EQ(SumToInputsText({1, 3}, {4, 1, 3}), "Sum(%3, [0]) | %3");
}

TEST_F(GradientTest, SumToInputsAsksAtRunTimeOtherwise) {
  const std::string axes = "BroadcastGradientArgs(Shape(%0), Shape(%1))";
  const std::string dx = "Reshape(Sum(%3, " + axes + "), Shape(%0))";
  const std::string dy = "Reshape(Sum(%3, " + axes + ":1), Shape(%1))";
  EXPECT_EQ(SumToInputsText({}, {}), dx + " | " + dy);
  EXPECT_EQ(SumToInputsText({-1, 3}, {-1, 3}), dx + " | " + dy);
  // The gradient of an operand of known shape is reduced along fixed axes, or not at all.
  EXPECT_EQ(SumToInputsText({-1}, {3}), dx + " | %3");
}

TEST_F(GradientTest, SquaresNeedNoReduction) {
  const Output x = sink_.Input(DType::kFloat), d = sink_.Input(DType::kFloat);
  const auto gradients = SumToInputs(Scope({x, x}, {x}, {d}), d, d);
  EXPECT_EQ(gradients[0].values, d);
  EXPECT_EQ(gradients[1].values, d);
}

TEST_F(GradientTest, SumToShapeOf) {
  const Output x = sink_.Input(DType::kFloat, {3});
  EXPECT_EQ(sink_.Text(SumToShapeOf(sink_.Input(DType::kFloat, {-1, 3}), x)), "Sum(%1, [0])");
  const Output unknown = sink_.Input(DType::kFloat);
  EXPECT_EQ(sink_.Text(SumToShapeOf(unknown, x)),
            StrCat("Reshape(Sum(%", unknown.node, ", BroadcastGradientArgs(Shape(%0), Shape(%",
                   unknown.node, "))), Shape(%0))"));
}

// The axes that SumToInputs chose for one operand; none if they are computed at run time.
struct Chosen {
  std::vector<int32_t> axes;
  bool reshape = false;
};
std::optional<Chosen> ChosenFor(const RecordingSink& sink, Output gradient) {
  Chosen chosen;
  const RecordingSink::Node* node = &sink.nodes[gradient.node];
  if (node->op == "Reshape") {
    chosen.reshape = true;
    node = &sink.nodes[node->inputs[0].outputs[0].node];
  }
  if (node->op != "Sum") return chosen;
  const RecordingSink::Node& axes = sink.nodes[node->inputs[1].outputs[0].node];
  if (axes.op != "Const") return std::nullopt;
  const auto flat = axes.attrs.at("value").get<Tensor>()->flat<int32_t>();
  chosen.axes.assign(flat.begin(), flat.end());
  return chosen;
}

// Checks that `chosen` reduces a gradient of shape `z` to shape `x`.
void ExpectReduces(const Chosen& chosen, const PartialShape& z, const PartialShape& x) {
  for (int i = 0; i < z.rank(); ++i) {
    const int own = i - (z.rank() - x.rank());
    if (std::count(chosen.axes.begin(), chosen.axes.end(), i) > 0) {
      EXPECT_TRUE(own < 0 || (x.dim(own) == 1 && chosen.reshape)) << x.ToString() << z.ToString();
    } else {
      EXPECT_TRUE(own >= 0 && x.dim(own) == z.dim(i)) << x.ToString() << z.ToString();
    }
  }
}

// For every pair of shapes of rank up to 2 with dimensions 1, 2, 3 and unknown: if a static
// reduction is chosen, it is right for every pair of actual shapes that match.
TEST_F(GradientTest, StaticReductionsAreRightForAllShapesThatFit) {
  std::vector<PartialShape> all = {PartialShape::Scalar()};
  for (int64_t a : {-1, 1, 2, 3}) {
    all.push_back({a});
    for (int64_t b : {-1, 1, 2, 3}) all.push_back({a, b});
  }
  int checked = 0;
  for (const PartialShape& x_shape : all) {
    for (const PartialShape& y_shape : all) {
      sink_.nodes.clear();
      const Output x = sink_.Input(DType::kFloat, x_shape);
      const Output y = sink_.Input(DType::kFloat, y_shape);
      const Output d = sink_.Input(DType::kFloat);
      const auto gradients = SumToInputs(Scope({x, y}, {d}, {d}), d, d);
      const std::optional<Chosen> chosen = ChosenFor(sink_, gradients[0].values);
      if (!chosen.has_value()) continue;
      for (const PartialShape& real_x : all) {
        for (const PartialShape& real_y : all) {
          if (!real_x.fully_known() || !real_y.fully_known()) continue;
          if (!x_shape.Compatible(real_x) || !y_shape.Compatible(real_y)) continue;
          const StatusOr<PartialShape> z = Broadcast(real_x, real_y);
          if (!z.ok()) continue;
          ExpectReduces(*chosen, *z, real_x);
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 300);
}

}  // namespace
}  // namespace penstock
