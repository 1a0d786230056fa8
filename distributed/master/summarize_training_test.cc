// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/summarize_training.h"

#include <functional>
#include <string>

#include "core/base/check.h"
#include "core/graph/builder.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// The differences between two programs that train the variables "w" and "b".
struct Model {
  std::string activation = "Relu";
  Attrs activation_attrs = {};
  float rate = 0.1f;
  bool other_order = false;  // true: the client adds the nodes in another order
  bool scaled_first = false;
  int64_t seed = 1;
  std::string scope;       // name scope of all nodes except the variables
  std::string device;      // device of all nodes except the variables
  std::string local = "";  // the name of a variable that is added to the input
  bool local_is_private = false;
  bool queue = false;  // true: the input comes from a queue
  bool extras = false;
  bool identities = false;
  bool prints = false;
};

struct Step {
  explicit Step(const Model& model) {
    {
      const auto scope = g.NameScope(model.scope);
      const auto device = g.DeviceScope(model.device);
      if (model.extras) Call("Tanh", {InputOf(model)});
      if (model.other_order) {
        Train(model, "b", Scalar(0.5f));
        Train(model, "w", GradientOf(model));
      } else {
        Train(model, "w", GradientOf(model));
        Train(model, "b", Scalar(0.5f));
      }
    }
    CHECK_OK(g.status());
    std::vector<Partition> partitions;
    partitions.push_back({"/job:ps/replica:0/task:0/device:CPU:0", g.graph().Clone()});
    program = SummarizeTraining(g.graph(), partitions);
  }

  Output Scalar(float value) { return Constant(g, Tensor::Scalar(value)); }
  Output VariableOf(const std::string& name, Attrs attrs = {}) {
    attrs.insert(
        {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}, {"shared_name", name}});
    return CallIn(g, "VarHandleOp", {}, attrs);
  }
  Output InputOf(const Model& model) {
    if (!model.queue) return CallIn(g, "Placeholder", {}, {{"dtype", DType::kFloat}});
    const std::vector<DType> types = {DType::kFloat};
    const Output queue = CallIn(g, "FIFOQueueV2", {}, {{"component_types", types}});
    return Call("QueueDequeueV2", {queue}, {{"component_types", types}});
  }
  Output GradientOf(const Model& model) {
    Output x = InputOf(model);
    if (!model.local.empty()) {
      Attrs attrs;
      if (model.local_is_private) attrs.emplace("_local", true);
      x = x + Call("ReadVariableOp", {VariableOf(model.local, attrs)}, {{"dtype", DType::kFloat}});
    }
    if (model.scaled_first) x = x * Scalar(2);
    x = Call(model.activation, {x}, model.activation_attrs);
    if (model.identities) x = Call("Identity", {x});
    if (model.prints) x = Call("Print", {x, Outputs{x}}, {{"message", "x ="}});
    if (!model.scaled_first) x = x * Scalar(2);
    const Output shape = Constant(g, Tensor::Vector<int32_t>({}));
    return x + Call("RandomUniform", {shape}, {{"dtype", DType::kFloat}, {"seed", model.seed}});
  }
  void Train(const Model& model, const std::string& variable, Output gradient) {
    CallN("ResourceApplyGradientDescent", {VariableOf(variable), Scalar(model.rate), gradient});
  }

  GraphBuilder g;
  TrainingProgram program;
};

std::vector<uint64_t> HashesOf(const Model& model) {
  std::vector<uint64_t> hashes;
  for (const TrainingProgram::Update& update : Step(model).program.updates) {
    hashes.push_back(update.hash);
  }
  EXPECT_EQ(hashes.size(), 2u);
  return hashes;
}

// Returns the texts of the nodes of `model` that the plain model lacks.
std::vector<std::string> NewNodes(const Model& model) {
  const TrainingProgram plain = Step({}).program;
  std::vector<std::string> texts;
  for (const TrainingProgram::Node& node : Step(model).program.nodes) {
    bool known = false;
    for (const TrainingProgram::Node& other : plain.nodes) known |= other.hash == node.hash;
    if (!known) texts.push_back(node.text);
  }
  return texts;
}

TEST(SummarizeTraining, OneProgramOnSeveralWorkers) {
  const std::vector<uint64_t> plain = HashesOf({});
  EXPECT_EQ(HashesOf({.other_order = true}), plain);
  EXPECT_EQ(HashesOf({.seed = 7}), plain);
  EXPECT_EQ(HashesOf({.scope = "tower_3"}), plain);
  EXPECT_EQ(HashesOf({.device = "/job:worker/task:1"}), plain);
  EXPECT_EQ(HashesOf({.queue = true}), plain);
  EXPECT_EQ(HashesOf({.extras = true}), plain);
  EXPECT_EQ(HashesOf({.identities = true}), plain);
  EXPECT_EQ(HashesOf({.prints = true}), plain);
  EXPECT_EQ(HashesOf({.local = "local_3", .local_is_private = true}),
            HashesOf({.local = "local_4", .local_is_private = true}));
  EXPECT_EQ(HashesOf({.local = "worker_3/step"}), HashesOf({.local = "worker_14/step"}));
}

TEST(SummarizeTraining, OtherPrograms) {
  const std::vector<uint64_t> plain = HashesOf({});
  const std::vector<uint64_t> tanh = HashesOf({.activation = "Tanh"});
  EXPECT_EQ(tanh[0], plain[0]) << "b is updated alike";
  EXPECT_NE(tanh[1], plain[1]);
  const std::vector<uint64_t> faster = HashesOf({.rate = 0.2f});
  EXPECT_NE(faster[0], plain[0]);
  EXPECT_NE(faster[1], plain[1]);
  EXPECT_NE(HashesOf({.scaled_first = true})[1], plain[1]);
  EXPECT_NE(HashesOf({.activation = "Tanh", .prints = true})[1], plain[1]);
  EXPECT_NE(HashesOf({.local = "step"})[1], HashesOf({.local = "other"})[1]);
  EXPECT_NE(HashesOf({.activation = "LeakyRelu", .activation_attrs = {{"alpha", 0.1f}}})[1],
            HashesOf({.activation = "LeakyRelu", .activation_attrs = {{"alpha", 0.2f}}})[1]);
}

TEST(SummarizeTraining, NodesComeAfterTheirInputs) {
  EXPECT_EQ(NewNodes({}), std::vector<std::string>());
  const std::vector<std::string> tanh = NewNodes({.activation = "Tanh", .scope = "model"});
  ASSERT_FALSE(tanh.empty());
  EXPECT_EQ(tanh[0], "'model/Tanh' (Tanh)");
  const std::vector<std::string> faster = NewNodes({.rate = 0.25f});
  ASSERT_EQ(faster.size(), 4u) << "two updates, each with a constant";
  EXPECT_NE(faster[0].find("(Const, value="), std::string::npos) << faster[0];
  EXPECT_NE(faster[0].find("0.25"), std::string::npos) << faster[0];
}

TEST(SummarizeTraining, AStepWithoutUpdates) {
  GraphBuilder g;
  Constant(g, Tensor::Scalar(1.0f));
  std::vector<Partition> partitions;
  partitions.push_back({"d", g.graph().Clone()});
  EXPECT_TRUE(SummarizeTraining(g.graph(), partitions).empty());
}

// Returns the hash of a step whose gradient is computed by a loop with `op` in its body.
uint64_t HashOfLoop(const std::string& op) {
  GraphBuilder g;
  const Output start = Constant(g, Tensor::Scalar(1.0f)), limit = Constant(g, Tensor::Scalar(9.0f));
  const auto enter = [&](Output x, bool constant) {
    return Call("Enter", {x}, {{"frame_name", StrCat("frame ", op)}, {"is_constant", constant}});
  };
  const Output entered = enter(start, false);
  const Outputs merged = CallN("Merge", {Outputs{entered, entered}});
  const Output less = Call("LoopCond", {Call("Less", {merged[0], enter(limit, true)})});
  const Outputs switched = CallN("Switch", {merged[0], less});
  const Output next = Call("NextIteration", {Call(op, {switched[1]})});
  CHECK_OK(g.mutable_graph().SetInput(g.NodeOf(merged[0]), 1, {g.NodeOf(next), 0}));
  const Output variable =
      CallIn(g, "VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}});
  CallN("ResourceApplyGradientDescent", {variable, start, Call("Exit", {switched[0]})});
  CHECK_OK(g.status());
  std::vector<Partition> partitions;
  partitions.push_back({"d", g.graph().Clone()});
  const TrainingProgram program = SummarizeTraining(g.graph(), partitions);
  CHECK(program.updates.size() == 1, "one update");
  return program.updates[0].hash;
}

TEST(SummarizeTraining, BodiesOfLoopsCount) {
  EXPECT_EQ(HashOfLoop("Exp"), HashOfLoop("Exp"));
  EXPECT_NE(HashOfLoop("Exp"), HashOfLoop("Square"));
}

}  // namespace
}  // namespace penstock
