// SPDX-License-Identifier: Apache-2.0
//
// Checks for every op in the registry that its kernels do what its declaration says. For every type
// that the op allows: there is a kernel; its outputs have the inferred shape and type (OpRunner
// checks that); the node survives a round trip through a GraphDef; and its symbolic gradients of
// first and second order agree with central differences.
#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/gradients/gradients.h"
#include "core/graph/graph_proto.h"
#include "core/op/gradient.h"
#include "core/wire/deterministic_bytes.h"
#include "distributed/session/session.h"
#include "gtest/gtest.h"
#include "proto/tensorflow/graph.pb.h"
#include "tests/conformance/samples.h"

namespace penstock {
namespace {

// Returns the reason why an op cannot run alone; "" if it can, and so must have samples that work.
std::string WhyNotAlone(const OpDef& op) {
  if (op.internal()) return "the runtime's own: it has no meaning outside a partition";
  if (op.flow != FlowOp::kNone) return "the executor runs it, in a graph";
  for (const ArgDef& input : op.inputs) {
    const bool handle = input.name == "handle" || input.name.ends_with("_handle");
    if (handle && (input.type.type == "resource" || input.type.type == "string")) {
      return "works on a queue or its like: kernels/data has its tests";
    }
  }
  return op.untestable_alone;
}

std::vector<const OpDef*> RunnableOps() {
  std::vector<const OpDef*> ops;
  for (const OpDef* op : Registry::Global().ops()) {
    if (WhyNotAlone(*op).empty()) ops.push_back(op);
  }
  return ops;
}

std::string TestName(const testing::TestParamInfo<const OpDef*>& info) { return info.param->name; }

class Conformance : public testing::TestWithParam<const OpDef*> {
 protected:
  void SetUp() override {
    StatusOr<std::vector<SampleCall>> samples = SamplesOf(*GetParam());
    ASSERT_TRUE(samples.ok()) << samples.status();
    samples_ = *std::move(samples);
    ASSERT_FALSE(samples_.empty());
  }
  std::vector<SampleCall> samples_;
};

TEST_P(Conformance, HasAKernelForEveryTypeAndItDoesWhatShapeInferenceSays) {
  for (const SampleCall& call : samples_) {
    EXPECT_TRUE(Registry::Global().FindKernel(call.op->name, "CPU", call.attrs).ok())
        << call.label << ": no kernel on the CPU";
    const auto outputs = call.Run(call.Inputs());
    EXPECT_TRUE(outputs.ok()) << call.label << ": " << outputs.status();
  }
}

// Returns the inputs as nodes: variables for arguments that are variables, constants for single
// tensors that are not floating point, else placeholders. Appends their outputs to `*flat`.
std::vector<NodeInput> InputNodes(GraphBuilder& b, const SampleCall& call, Outputs* flat) {
  std::vector<NodeInput> inputs;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const ArgType& type = call.op->inputs[i].type;
    Outputs outputs;
    for (const Tensor& tensor : call.args[i]) {
      Output node;
      if (tensor.dtype() == DType::kResource) {
        const auto& element = tensor.scalar<ResourceHandle>().elements[0];
        node = CallIn(b, type.ref ? "VariableV2" : "VarHandleOp", {},
                      {{"dtype", element.dtype}, {"shape", element.shape}});
      } else {
        node = CallIn(b, "Placeholder", {}, {{"dtype", tensor.dtype()}, {"shape", tensor.shape()}});
        if (type.count.empty() && !type.list && !IsFloating(tensor.dtype())) {
          node = Constant(b, tensor);  // sizes, axes, indices: shape functions use their values
        }
      }
      outputs.push_back(node);
    }
    flat->insert(flat->end(), outputs.begin(), outputs.end());
    inputs.push_back(type.list || !type.count.empty() ? NodeInput(outputs) : NodeInput(outputs[0]));
  }
  return inputs;
}

std::string Bytes(const Graph& graph) {
  tensorflow::GraphDef def;
  ExportGraph(graph, &def);
  return DeterministicBytes(def);
}

TEST_P(Conformance, SurvivesTheWireFormat) {
  for (const SampleCall& call : samples_) {
    GraphBuilder b;
    Outputs flat;
    const std::vector<NodeInput> inputs = InputNodes(b, call, &flat);
    ASSERT_GE(b.AddNode(call.op->name, inputs, call.attrs, "node"), 0)
        << call.label << ": " << b.status();
    tensorflow::GraphDef def;
    ExportGraph(b.graph(), &def);
    tensorflow::GraphDef parsed;
    ASSERT_TRUE(parsed.ParseFromString(def.SerializeAsString()));
    Graph again(Registry::Global());
    const Status imported = ImportGraph(parsed, &again);
    ASSERT_TRUE(imported.ok()) << call.label << ": " << imported;
    const Node* before = b.graph().FindNode("node");
    const Node* after = again.FindNode("node");
    ASSERT_NE(after, nullptr);
    EXPECT_TRUE(before->attrs() == after->attrs()) << call.label;
    EXPECT_EQ(before->output_types(), after->output_types()) << call.label;
    Graph third(Registry::Global());
    tensorflow::GraphDef second;
    ExportGraph(again, &second);
    ASSERT_TRUE(ImportGraph(second, &third).ok());
    EXPECT_EQ(Bytes(again), Bytes(third)) << call.label;
  }
}

bool HasGradient(const OpDef& op) {
  using Plain = std::vector<Gradient> (*)(const GradientScope&);
  if (op.gradient == nullptr || op.stateful) return false;
  const Plain* plain = op.gradient.target<Plain>();
  return plain == nullptr || *plain != &NoGradient;
}

bool Differentiable(const SampleCall& call) {
  bool in = false;
  for (const Tensor& t : call.Inputs()) {
    in |= t.dtype() == DType::kDouble;
    if (t.dtype() == DType::kResource) return false;
  }
  return in && call.check_gradient;
}

// A graph with the op's gradients and their gradients.
class GradientGraph {
 public:
  explicit GradientGraph(const SampleCall& call) : call_(call) {}

  Status Build() {
    const std::vector<NodeInput> inputs = InputNodes(b_, call_, &inputs_);
    Outputs ys = CallN(call_.op->name, inputs, call_.attrs);
    RETURN_IF_ERROR(b_.status());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].dtype() == DType::kDouble) xs_.push_back(static_cast<int>(i));
    }
    Outputs real;
    for (Output y : ys) {
      if (y.dtype() == DType::kDouble) real.push_back(y);
    }
    if (real.empty()) return Status(StatusCode::kNotFound, "no real output");
    RETURN_IF_ERROR(Loss(real, 1, &loss_));
    ASSIGN_OR_RETURN(first_, GradientsOf(loss_));
    Outputs some;
    for (Output g : first_) {
      if (g.valid()) some.push_back(g);
    }
    if (!some.empty()) {
      RETURN_IF_ERROR(Loss(some, 2, &first_loss_));
      ASSIGN_OR_RETURN(second_, GradientsOf(first_loss_));
    }
    SessionOptions options;
    options.optimize = false;
    ASSIGN_OR_RETURN(session_, NewLocalSession(options));
    return session_->Extend(b_.graph());
  }

  // Compares each gradient with central differences of its loss.
  void Check() {
    CheckOrder("first", loss_, first_, 2e-6);
    if (!second_.empty()) CheckOrder("second", first_loss_, second_, 2e-5);
  }

 private:
  // Sets `*loss` to the sum of all elements of `outputs`, each with a different weight.
  Status Loss(const Outputs& outputs, int salt, Output* loss) {
    Outputs terms;
    for (size_t i = 0; i < outputs.size(); ++i) {
      // The weights, cosines of equally spaced numbers, are all different and have both signs.
      const Output flat = Reshape(outputs[i], Constant(b_, Tensor::Vector<int32_t>({-1})));
      const Output index = Cast(Range(Constant(b_, Tensor::Scalar<int32_t>(0)), SizeOf(flat),
                                      Constant(b_, Tensor::Scalar<int32_t>(1))),
                                DType::kDouble);
      const Output weights = Cos(index * 1.3 + (0.7 * static_cast<double>(i) + salt));
      terms.push_back(Sum(flat * weights, Constant(b_, Tensor::Vector<int32_t>({0}))));
    }
    *loss = terms.size() == 1 ? terms[0] : AddN(terms);
    return b_.status();
  }

  StatusOr<Outputs> GradientsOf(Output loss) {
    Outputs xs;
    for (int i : xs_) xs.push_back(inputs_[i]);
    ASSIGN_OR_RETURN(const std::vector<Gradient> gradients, AddGradients(b_, {loss}, xs));
    Outputs dense;
    for (const Gradient& g : gradients) dense.push_back(Dense(g));
    RETURN_IF_ERROR(b_.status());
    return dense;
  }

  StatusOr<Tensor> Evaluate(Output what, const std::vector<Tensor>& values) {
    Feeds feeds;
    for (size_t i = 0; i < inputs_.size(); ++i) feeds.emplace_back(inputs_[i].name(), values[i]);
    std::vector<Tensor> outputs;
    RETURN_IF_ERROR(session_->Run({}, feeds, {what.name()}, {}, &outputs, nullptr));
    return outputs[0];
  }

  void CheckOrder(const char* order, Output loss, const Outputs& gradients, double tolerance) {
    const std::vector<Tensor> values = call_.Inputs();
    for (size_t x = 0; x < xs_.size(); ++x) {
      const Tensor& at = values[xs_[x]];
      Tensor symbolic(DType::kDouble, at.shape());
      std::fill_n(symbolic.mutable_data<double>(), at.num_elements(), 0.0);
      if (gradients[x].valid()) {
        const StatusOr<Tensor> found = Evaluate(gradients[x], values);
        ASSERT_TRUE(found.ok()) << call_.label << ", " << order << " order: " << found.status();
        ASSERT_EQ(found->shape(), at.shape()) << call_.label << ", " << order << " order";
        symbolic = *found;
      }
      for (int64_t k = 0; k < at.num_elements(); ++k) {
        const StatusOr<double> numeric = CentralDifference(loss, values, xs_[x], k);
        ASSERT_TRUE(numeric.ok()) << call_.label << ": " << numeric.status();
        ASSERT_NEAR(symbolic.data<double>()[k], *numeric, tolerance * (1 + std::abs(*numeric)))
            << call_.label << ", " << order << " order, input " << xs_[x] << ", element " << k;
      }
    }
  }

  StatusOr<double> CentralDifference(Output loss, const std::vector<Tensor>& values, int input,
                                     int64_t element) {
    constexpr double kStep = 1e-5;
    double ends[2];
    for (int side : {0, 1}) {
      std::vector<Tensor> moved = values;
      moved[input] = values[input].Clone();
      moved[input].mutable_data<double>()[element] += side == 0 ? -kStep : kStep;
      ASSIGN_OR_RETURN(const Tensor value, Evaluate(loss, moved));
      ends[side] = value.scalar<double>();
    }
    return (ends[1] - ends[0]) / (2 * kStep);
  }

  const SampleCall& call_;
  GraphBuilder b_;
  Outputs inputs_;
  std::vector<int> xs_;  // indices of the inputs that are differentiated
  Output loss_, first_loss_;
  Outputs first_, second_;
  std::unique_ptr<SessionInterface> session_;
};

TEST_P(Conformance, GradientsAreThoseOfCentralDifferences) {
  if (!HasGradient(*GetParam())) GTEST_SKIP() << "no gradient flows through it";
  for (const SampleCall& call : samples_) {
    if (!Differentiable(call)) continue;
    GradientGraph graph(call);
    const Status built = graph.Build();
    if (built.code() == StatusCode::kNotFound && built.message() == "no real output") continue;
    ASSERT_TRUE(built.ok()) << call.label << ": " << built;
    graph.Check();
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Conformance, testing::ValuesIn(RunnableOps()), TestName);

}  // namespace
}  // namespace penstock
