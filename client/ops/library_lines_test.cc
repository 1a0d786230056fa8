// SPDX-License-Identifier: Apache-2.0
//
// Tests that errors name the line of the program that called a function of the client's library
// which makes several nodes.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/accumulation.h"
#include "client/allreduce/collective_replicas.h"
#include "client/control_flow.h"
#include "client/embedding/dynamic_table.h"
#include "client/exactly_once.h"
#include "client/gradients.h"
#include "client/input.h"
#include "client/layers/layers.h"
#include "client/mutex.h"
#include "client/ops/ops.h"
#include "client/optimizers.h"
#include "client/optimizers/schedules.h"
#include "client/optimizers/shaping.h"
#include "client/program.h"
#include "client/queue_runner.h"
#include "client/replicate.h"
#include "client/rnn.h"
#include "client/saver.h"
#include "client/summary/summaries.h"
#include "client/sync/bounded_staleness.h"
#include "client/sync/staleness.h"
#include "client/sync/sync_replicas.h"
#include "client/tensor_array.h"
#include "client/training.h"
#include "client/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using ::testing::EndsWith;

// Builds a program, and checks the lines of its new nodes.
class LibraryLines : public testing::Test {
 protected:
  // Expects that there are new nodes, and that all have one of the lines of this file.
  void ExpectNewNodesAt(const std::vector<int>& lines) {
    ASSERT_TRUE(program_.status().ok()) << program_.status();
    const int end = program_.graph().max_id();
    EXPECT_GT(end, seen_);
    std::vector<int> found;
    for (; seen_ < end; ++seen_) {
      const Node* const node = program_.graph().node(seen_);
      if (node == nullptr) continue;
      const SourceLine source = program_.SourceLineOf(*node);
      EXPECT_THAT(lines, ::testing::Contains(source.line)) << node->name();
      EXPECT_STREQ(source.file, __FILE__) << node->name();
      found.push_back(source.line);
    }
    for (const int line : lines) EXPECT_THAT(found, ::testing::Contains(line));
  }
  void ExpectNewNodesAt(int line) { ExpectNewNodesAt(std::vector<int>{line}); }
  void ForgetNewNodes() { seen_ = program_.graph().max_id(); }

  // Expects that `build` sets the program's error, and that the error names the line where the
  // invalid call begins.
  static void ExpectErrorAt(int line, const std::function<void(Program&)>& build) {
    Program program;
    build(program);
    EXPECT_THAT(std::string(program.status().message()),
                EndsWith(StrCat(" (made at ", __FILE__, ":", line, ")")));
  }

  Program program_;
  const Output x_ = ops::Placeholder(program_, DType::kFloat, {.shape = {2, 3, 4}});
  const Output yes_ = ops::Placeholder(program_, DType::kBool, {.shape = {}});
  const Variable w_ = Variable(program_, "w", {2, 2}, Zeros());
  int seen_ = program_.graph().max_id();
};

TEST_F(LibraryLines, OfConditionals) {
  const auto branch = [&] { return Outputs{ops::Relu(x_)}; };
  const int inside = __LINE__ - 1;
  Cond(program_, yes_, branch, branch);
  ExpectNewNodesAt({inside, __LINE__ - 1});
  Case(program_, {{yes_, branch}, {yes_, branch}}, branch);
  ExpectNewNodesAt({inside, __LINE__ - 1});
  ExpectErrorAt(__LINE__, [](Program& p) { Cond(p, Constant(p, Tensor::Scalar(1)), {}, {}); });
}

TEST_F(LibraryLines, OfLoops) {
  const Output zero = ops::Const(program_, DType::kInt32, Tensor::Scalar<int32_t>(0));
  const auto below = [](const Outputs& v) { return ops::Less(v[0], 10); };
  const auto more = [](const Outputs& v) { return Outputs{v[0] + 1}; };
  const std::vector<int> inside = {__LINE__ - 2, __LINE__ - 1};
  ForgetNewNodes();
  While(program_, {zero}, below, more);
  ExpectNewNodesAt({inside[0], inside[1], __LINE__ - 1});
  While(program_, {zero}, below, more, {.maximum_iterations = 3});
  ExpectNewNodesAt({inside[0], inside[1], __LINE__ - 1});
  ExpectErrorAt(__LINE__, [&](Program& p) { While(p, {}, below, more); });
}

TEST_F(LibraryLines, OfFunctionsOfSlices) {
  const auto add = [](const Outputs& sum, const Outputs& v) { return Outputs{sum[0] + v[0]}; };
  const auto twice = [](const Outputs& v) { return Outputs{v[0] * 2}; };
  const int adds = __LINE__ - 2, doubles = __LINE__ - 1;
  const Output zero = ops::ZerosLike(x_);
  ForgetNewNodes();
  FoldL(program_, {zero}, {zero}, add, {.shape_invariants = {PartialShape()}, .name = "l"});
  ExpectNewNodesAt({adds, __LINE__ - 1});
  FoldR(program_, {zero}, {zero}, add, {.shape_invariants = {PartialShape()}, .name = "r"});
  ExpectNewNodesAt({adds, __LINE__ - 1});
  MapFn(program_, {zero}, {DType::kFloat}, twice);
  ExpectNewNodesAt({doubles, __LINE__ - 1});
  const Output start = ops::Const(program_, DType::kFloat, Tensor(DType::kFloat, {3, 4}));
  ForgetNewNodes();
  Scan(program_, {zero}, {start}, add, /*reverse=*/true);
  ExpectNewNodesAt({adds, __LINE__ - 1});
}

TEST_F(LibraryLines, OfTensorArrays) {
  const TensorArray array(program_, ops::Const(program_, DType::kInt32, Tensor::Scalar(2)),
                          DType::kFloat);
  ForgetNewNodes();
  const TensorArray slices = TensorArray::Unstack(program_, x_);
  ExpectNewNodesAt(__LINE__ - 1);
  const Output index = ops::Const(program_, DType::kInt32, Tensor::Scalar(0));
  ForgetNewNodes();
  array.Write(index, x_).Read(index);
  ExpectNewNodesAt(__LINE__ - 1);
  slices.Stack(), slices.Concat(), slices.Size();
  ExpectNewNodesAt(__LINE__ - 1);
  ExpectErrorAt(__LINE__ + 1, [](Program& p) {
    TensorArray(p, Constant(p, Tensor::Scalar<float>(1)), DType::kFloat);
  });
}

TEST_F(LibraryLines, OfRecurrentNetworks) {
  const GruCell gru(program_, "gru", 4, 5);
  const int gru_line = __LINE__ - 1;
  ExpectNewNodesAt(gru_line);
  const LstmCell lstm(program_, "lstm", 5, 6);
  const int lstm_line = __LINE__ - 1;
  ExpectNewNodesAt(lstm_line);
  const StackedCell cell({std::make_shared<GruCell>(gru), std::make_shared<LstmCell>(lstm)});
  const Output lengths = ops::Const(program_, DType::kInt32, Tensor::Vector<int32_t>({1, 3}));
  ForgetNewNodes();
  DynamicRnn(program_, cell, x_, {.lengths = lengths});
  ExpectNewNodesAt({gru_line, lstm_line, __LINE__ - 1});
  ExpectErrorAt(__LINE__ + 1, [](Program& p) {
    const BasicRnnCell narrow(p, "narrow", 3, 5);
    const Output inputs = CallIn(p, "Placeholder", {},
                                 {{"dtype", DType::kFloat}, {"shape", PartialShape({2, 3, 4})}});
    DynamicRnn(p, narrow, inputs);
  });
}

// The C++ standard library calls the cell's constructor, so the line of the program is not known.
TEST_F(LibraryLines, OfACellWithoutALineAreThoseOfTheNetwork) {
  const auto cell = std::make_shared<BasicRnnCell>(program_, "cell", 4, 5);
  ForgetNewNodes();
  DynamicRnn(program_, StackedCell({cell}), x_);
  const int line = __LINE__ - 1;
  for (; seen_ < program_.graph().max_id(); ++seen_) {
    const Node* const node = program_.graph().node(seen_);
    if (node == nullptr || node->op_name() == "ReadVariableOp") continue;
    EXPECT_EQ(program_.SourceLineOf(*node).line, line) << node->name();
  }
}

// An RnnCell that the program defines; its nodes have the lines that make them.
class DoublingCell final : public RnnCell {
 public:
  static constexpr int kLine = __LINE__ + 2;
  RnnFunction Read() const override {
    return [](Output in, const Outputs& state) { return RnnStep{ops::Mul(in, 2), state}; };
  }
  std::vector<int64_t> state_sizes() const override { return {1}; }
  int64_t output_size() const override { return 4; }
  DType dtype() const override { return DType::kFloat; }
};

TEST_F(LibraryLines, OfACellOfTheProgramAreItsOwn) {
  DynamicRnn(program_, DoublingCell(), x_);
  ExpectNewNodesAt({DoublingCell::kLine, __LINE__ - 1});
}

TEST_F(LibraryLines, OfOptimizers) {
  GradientDescent descent(0.1);
  Adam adam(0.1);
  const Output loss = Call("L2Loss", {w_});
  ForgetNewNodes();
  const auto gradients = descent.ComputeGradients(program_, loss);
  ExpectNewNodesAt(__LINE__ - 1);
  descent.ApplyGradients(program_, gradients);
  ExpectNewNodesAt(__LINE__ - 1);
  adam.ApplyGradients(program_, ClipByGlobalNorm(gradients, 1).gradients, program_.GlobalStep());
  ExpectNewNodesAt(__LINE__ - 1);
  ClipByNorm(program_, gradients, 1), ClipByValue(program_, gradients, 1);
  ExpectNewNodesAt(__LINE__ - 1);
  const Output value = w_;
  ForgetNewNodes();
  L1Penalty({value}, 0.1), L2Penalty({value}, 0.1);
  ExpectNewNodesAt(__LINE__ - 1);
  ExponentialDecay(program_, {.initial = 1}), CosineDecay(program_, {.initial = 1});
  ForgetNewNodes();  // one of them is the read of the global step, which has its own line
  ExpectErrorAt(__LINE__, [](Program& p) { PiecewiseConstant(p, {1}, {}); });
  ExpectErrorAt(__LINE__ + 2, [](Program& p) {
    GradientDescent other(0.1);
    other.Minimize(p, Constant(p, Tensor::Scalar<float>(1)));
  });
}

TEST_F(LibraryLines, OfTrainingsOfSeveralWorkers) {
  GradientDescent descent(0.1);
  const auto gradients = descent.ComputeGradients(program_, Call("L2Loss", {w_}));
  program_.GlobalStep();
  ForgetNewNodes();
  SyncReplicas sync(program_, {.replicas_to_aggregate = 2, .replicas = 2});
  const Output train = sync.Apply(descent, gradients);
  ExpectNewNodesAt(__LINE__ - 1);
  Staleness(program_, train);
  ExpectNewNodesAt(__LINE__ - 1);
  BoundedStaleness bounded(program_, {});
  bounded.Apply(train);
  ExpectNewNodesAt(__LINE__ - 1);
  AccumulateGradients(program_, gradients, 4);
  ExpectNewNodesAt(__LINE__ - 1);
  CollectiveReplicas replicas(program_, {.workers = 2});
  replicas.Average(gradients), replicas.Average(x_), replicas.Barrier();
  ExpectNewNodesAt(__LINE__ - 1);
  ExactlyOnce once(program_);
  once.Apply(descent, gradients);
  ExpectNewNodesAt(__LINE__ - 1);
  ExpectErrorAt(__LINE__, [](Program& p) { SyncReplicas(p, {.replica = 7}); });
  ExpectErrorAt(__LINE__, [](Program& p) { BoundedStaleness(p, {.bound = -1}); });
  ExpectErrorAt(__LINE__, [](Program& p) { ExactlyOnce(p, {.workers = 1, .worker = 2}); });
  ExpectErrorAt(__LINE__, [](Program& p) { CollectiveReplicas(p, {.worker = 3}); });
}

TEST_F(LibraryLines, OfTowers) {
  GradientDescent descent(0.1);
  const auto loss = [&](int) { return ops::L2Loss(w_); };
  const int inside = __LINE__ - 1;
  BuildTowers(program_, descent, {"/device:CPU:0", "/device:CPU:1"}, loss);
  ExpectNewNodesAt({inside, w_.source_line().line, __LINE__ - 1});
}

TEST_F(LibraryLines, OfInputs) {
  QueueRunners runners(program_);
  const Output files = StringInputProducer(runners, {"a", "b"}, {.num_epochs = 2});
  ExpectNewNodesAt(__LINE__ - 1);
  RangeInputProducer(runners, 3), SliceInputProducer(runners, {x_});
  ExpectNewNodesAt(__LINE__ - 1);
  const Output reader = CallIn(program_, "TFRecordReaderV2", {});
  ForgetNewNodes();
  ReadRecord(reader, files);
  ExpectNewNodesAt(__LINE__ - 1);
  Batch(runners, {x_}, 2), ShuffleBatch(runners, {x_}, 2, {.capacity = 9, .seed = 1});
  ExpectNewNodesAt(__LINE__ - 1);
  const Output length = ops::Const(program_, DType::kInt32, Tensor::Scalar(2));
  ForgetNewNodes();
  BucketBySequenceLength(runners, length, {x_}, 2, {4});
  ExpectNewNodesAt(__LINE__ - 1);
  ExpectErrorAt(__LINE__ + 2, [](Program& p) {
    QueueRunners none(p);
    Batch(none, {}, 2);
  });
}

TEST_F(LibraryLines, OfMutexesGroupsAndSavers) {
  const Output mutex = NewMutex(program_, "m", w_.handle());
  ExpectNewNodesAt(__LINE__ - 1);
  const Outputs locks = Lock(program_, {mutex}, {x_});
  ExpectNewNodesAt(__LINE__ - 1);
  Unlock(program_, locks, {x_}), Commit(program_, w_.handle(), {x_});
  ExpectNewNodesAt(__LINE__ - 1);
  program_.Group({x_}, "all"), program_.Initialize({w_}), program_.AreInitialized({w_});
  ExpectNewNodesAt(__LINE__ - 1);
  const Saver saver(program_, {}, {.background = true});
  ExpectNewNodesAt(__LINE__ - 1);
  TrainingLoop(program_, {.train = x_}, {.checkpoint_dir = "unused"});
  ExpectNewNodesAt(__LINE__ - 1);
  const Output one = ops::Const(program_, DType::kFloat, Tensor::Scalar<float>(1));
  ForgetNewNodes();
  Summaries summaries(program_);
  summaries.AddScalar("x", one), summaries.AddHistogram("h", x_), summaries.Merged();
  ExpectNewNodesAt(__LINE__ - 1);
}

TEST_F(LibraryLines, OfTables) {
  const DynamicTable table(program_, "table", 2, TableInitializer::Constant(0),
                           TableMethod::GradientDescent(1), {.parts = 2});
  const layers::Embedding embedding(program_, "embedding", 8, 3, {.parts = 2});
  const Output ids = ops::Const(program_, DType::kInt64, Tensor::Vector<int64_t>({1, 2}));
  const Output splits = ops::Const(program_, DType::kInt64, Tensor::Vector<int64_t>({0, 2}));
  ForgetNewNodes();
  table.Size(), table.Erase(ids);
  ExpectNewNodesAt(__LINE__ - 1);
  const IdLists lists = IdLists::FromRagged(ids, splits);
  ExpectNewNodesAt(__LINE__ - 1);
  const Output rows = EmbeddingLookupSparse(table, lists);
  ExpectNewNodesAt(__LINE__ - 1);
  embedding(lists);
  ExpectNewNodesAt(__LINE__ - 1);
  const auto gradients = ComputeGradients(program_, Call("L2Loss", {rows}), {table});
  table.Apply(gradients.tables[0]);
  ForgetNewNodes();
  ExpectErrorAt(__LINE__ + 3, [](Program& p) {
    const DynamicTable other(p, "other", 2, TableInitializer::Constant(0),
                             TableMethod::GradientDescent(1));
    other.Erase(Constant(p, Tensor::Vector<int32_t>({1})));
  });
}

}  // namespace
}  // namespace penstock::client
