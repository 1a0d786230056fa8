// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "core/compiler/passes/passes.h"
#include "core/graph/builder.h"
#include "core/graph/testing/test_ops.h"
#include "core/op/gradient.h"
#include "core/op/private_attrs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class FunctionGradientsTest : public ::testing::Test {
 protected:
  Output Input(const char* name) {
    return {&b_, b_.AddNode("Placeholder", {}, {{"dtype", DType::kFloat}}, name), 0};
  }
  Output Named(const char* name, Output x) { return Call("Identity", {x}, {}, name); }
  // Adds a node like those that core/functions leaves. Its inputs are the results of a function,
  // its arguments, and the gradients of the results; it has an output for each argument. "Any" has
  // the signature of SymbolicGradient.
  Outputs Gradients(const char* name, Outputs inputs, size_t arguments, int64_t results) {
    const int node = b_.AddNode(
        "Any", {std::move(inputs)},
        {{"Tout", std::vector<DType>(arguments, DType::kFloat)}, {kFunctionResultsAttr, results}},
        name);
    Outputs outputs;
    for (size_t i = 0; i < arguments; ++i) outputs.push_back({&b_, node, static_cast<int>(i)});
    return outputs;
  }
  Status Run(std::vector<std::string> targets = {}) {
    EXPECT_TRUE(b_.status().ok()) << b_.status();
    graph_ = std::move(b_.mutable_graph());
    const std::vector<DeviceInfo> devices;
    CompileOptions options;
    options.targets = std::move(targets);
    CompileReport report;
    PassContext context{.program = graph_,
                        .devices = devices,
                        .options = options,
                        .report = report,
                        .graph = &graph_};
    RETURN_IF_ERROR(ExpandFunctionGradients(context));
    return graph_.Validate();
  }
  // Returns the node whose output 0 is the input of the node `name`.
  const Node* Source(const char* name) const { return graph_.FindNode(name)->input(0).node; }

  GraphBuilder b_{TestOps()};
  Graph graph_{TestOps()};
};

TEST_F(FunctionGradientsTest, ReplacesTheNodeByGradients) {
  const Output x = Input("x"), y = Input("y"), unused = Input("unused"), dz = Input("dz");
  const Output z = x * y;
  const Outputs d = Gradients("d", {z, x, y, unused, dz}, 3, 1);
  Named("dx", d[0]), Named("dy", d[1]), Named("du", d[2]);
  const Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(graph_.FindNode("d"), nullptr);
  EXPECT_EQ(Print(*Source("dx")), "Mul(dz, y)");
  EXPECT_EQ(Print(*Source("dy")), "Mul(dz, x)");
  EXPECT_EQ(Print(*Source("du")), "ZerosLike(unused)");
  EXPECT_THAT(Source("dx")->name(), StartsWith("d/"));
}

TEST_F(FunctionGradientsTest, DifferentiatesGradientsOfInnerFunctions) {
  const Output x = Input("x"), y = Input("y"), dz = Input("dz"), ddx = Input("ddx");
  // The outer function is the gradient of x * y for x. Its gradient for y is dz * ddx.
  const Output dx = Gradients("inner", {x * y, x, y, dz}, 2, 1)[0];
  Named("result", Gradients("outer", {dx, y, ddx}, 1, 1)[0]);
  const Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Print(*Source("result")), "Mul(ddx, dz)");
}

TEST_F(FunctionGradientsTest, KeepsTheDevice) {
  const Output x = Input("x");
  const GraphBuilder::Scope scope = b_.DeviceScope("/job:ps/task:0");
  Named("dx", Gradients("d", {x * x, x, x}, 1, 1)[0]);
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Source("dx")->requested_device(), "/job:ps/task:0");
}

TEST_F(FunctionGradientsTest, KeepsTheOrder) {
  const Output x = Input("x"), before = Input("before");
  Outputs d;
  {
    const GraphBuilder::Scope after = b_.ControlDependencies({before});
    d = Gradients("d", {x * x, x, x}, 1, 1);
  }
  const GraphBuilder::Scope after = b_.ControlDependencies({d[0]});
  Named("last", x);
  const Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Print(*graph_.FindNode("last")), "Identity(x, ^d)");
  const Node* const node = graph_.FindNode("d");
  EXPECT_EQ(node->op_name(), "NoOp");
  ASSERT_EQ(node->control_inputs().size(), 2u);
  EXPECT_EQ(node->control_inputs()[0]->op_name(), "AddN");  // the gradient
  EXPECT_EQ(node->control_inputs()[1]->name(), "before");
}

TEST_F(FunctionGradientsTest, ATargetRunsTheGradients) {
  const Output x = Input("x");
  Gradients("d", {x * x, x, x}, 1, 1);
  const Status status = Run({"d"});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(graph_.FindNode("d")->op_name(), "NoOp");
  EXPECT_EQ(graph_.FindNode("d")->control_inputs().size(), 1u);
}

TEST_F(FunctionGradientsTest, NamesAnOpWithoutGradient) {
  const Output x = Input("x");
  Named("dx", Gradients("d", {Call("Opaque", {x}, {}, "middle"), x, x}, 1, 1)[0]);
  const Status status = Run();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("middle"));
}

TEST_F(FunctionGradientsTest, RefusesAnAttributeThatDoesNotFit) {
  for (const int64_t results : {int64_t{-1}, int64_t{2}, int64_t{1} << 62}) {
    b_.mutable_graph() = Graph(TestOps());
    GraphBuilder b(TestOps());
    const int x = b.AddNode("Placeholder", {}, {{"dtype", DType::kFloat}}, "x");
    const Output input = {&b, x, 0};
    b.AddNode("Any", {Outputs{input, input, input}},
              {{"Tout", std::vector<DType>{DType::kFloat}}, {kFunctionResultsAttr, results}}, "d");
    b_.mutable_graph() = std::move(b.mutable_graph());
    const Status status = Run();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("node 'd': attribute _function_results does not fit"));
  }
}

}  // namespace
}  // namespace penstock
