// SPDX-License-Identifier: Apache-2.0
//
// Runs random ops on several threads and replays their StateLog on an empty store. Tests that every
// resource has the same bytes.
#include <functional>
#include <random>
#include <thread>

#include "gtest/gtest.h"
#include "tests/conformance/logged_store.h"

namespace penstock {
namespace {

constexpr int kBatchRows = 8, kBatchColumns = 3, kVariables = 3;

class Worker {
 public:
  Worker(const LoggedStore& run, int number, int seed)
      : run_(run), number_(number), random_(seed * 100 + number) {}

  void Steps(int count) {
    using Step = void (Worker::*)();
    static constexpr Step kSteps[] = {
        &Worker::Assign, &Worker::Dense,    &Worker::Momentum,  &Worker::Sparse, &Worker::Scatter,
        &Worker::Slice,  &Worker::Generate, &Worker::UseQueues, &Worker::Table,  &Worker::Stage,
        &Worker::Gather, &Worker::Barrier,  &Worker::Remake};
    for (int i = 0; i < count; ++i) (this->*kSteps[Below(std::size(kSteps))])();
  }

 private:
  int Below(size_t n) { return static_cast<int>(random_() % n); }
  Tensor Floats(const Shape& shape) {
    Tensor tensor(DType::kFloat, shape);
    for (float& x : tensor.mutable_flat<float>()) x = static_cast<float>(random_()) / 1e9f;
    return tensor;
  }
  Tensor RandomRows(int count) {
    std::vector<int32_t> rows(count);
    for (int32_t& row : rows) row = Below(kBatchRows);
    return Tensor::Vector(rows);
  }
  Tensor Variable() { return HandleOf(StrCat("v", Below(kVariables)), "Variable"); }
  Attrs Float(const char* attr = "T") { return {{attr, DType::kFloat}}; }

  void Assign() {
    run_.Run("AssignVariableOp", {{Variable(), Floats({kBatchRows, kBatchColumns})}});
    run_.Run("AssignAddVariableOp", {{Variable(), Floats({kBatchRows, kBatchColumns})}});
  }
  void Dense() {
    run_.Run("ResourceApplyGradientDescent",
             {{Variable(), Tensor::Scalar(0.1f), Floats({kBatchRows, kBatchColumns})}});
  }
  void Momentum() {
    run_.Run("ResourceApplyMomentum",
             {{Variable(), HandleOf("slot", "Variable"), Tensor::Scalar(0.1f),
               Floats({kBatchRows, kBatchColumns}), Tensor::Scalar(0.9f)}});
  }
  void Sparse() {
    run_.Run("ResourceSparseApplyAdagrad",
             {{Variable(), HandleOf("slot", "Variable"), Tensor::Scalar(0.1f),
               Floats({4, kBatchColumns}), RandomRows(4)}});
  }
  void Scatter() {
    run_.Run("ResourceScatterUpdate", {{Variable(), RandomRows(2), Floats({2, kBatchColumns})}});
    const Tensor places = RandomRows(4).Reshaped({4, 1});
    run_.Run("ResourceScatterNdAdd", {{Variable(), places, Floats({4, kBatchColumns})}});
  }
  void Slice() {
    const auto vector = [](int32_t x, int32_t y) { return Tensor::Vector<int32_t>({x, y}); };
    run_.Run("ResourceStridedSliceAssign",
             {{Variable(), vector(5, 0), vector(1, 2), vector(-2, 1), Floats({2, 2})}});
  }
  void Generate() {
    run_.Run("RngReadAndSkip", {{HandleOf("generator", "Variable"), Tensor::Scalar(1),
                                 Tensor::Scalar<uint64_t>(Below(1000))}});
  }
  // Takes no more elements than it has enqueued, so that no thread waits forever.
  void UseQueues() {
    const int count = 1 + Below(4);
    for (const char* name : {"fifo", "shuffle"}) {
      const Tensor queue = HandleOf(name, "");
      run_.Run("QueueEnqueueManyV2", {.inputs = {queue}, .list = {Floats({count, 2})}});
      run_.Run("QueueEnqueueV2", {.inputs = {queue}, .list = {Floats({2})}});
      run_.Run("QueueDequeueManyV2",
               {.inputs = {queue, Tensor::Scalar<int32_t>(Below(count + 1))},
                .attrs = {{"component_types", std::vector<DType>{DType::kFloat}}}});
    }
  }
  void Table() {
    const Tensor table = HandleOf("table", "");
    const auto keys = [this] {
      return Tensor::Vector<std::string>({StrCat(Below(20)), StrCat(Below(20))});
    };
    run_.Run("LookupTableInsertV2", {{table, keys(), Floats({2})}});
    run_.Run("LookupTableRemoveV2", {{table, keys()}});
    if (Below(10) == 0) run_.Run("LookupTableImportV2", {{table, keys(), Floats({2})}});
  }
  void Stage() {
    const Attrs attrs = {{"shared_name", "area"}, {"dtypes", std::vector<DType>{DType::kFloat}}};
    for (int i = 0; i < 2; ++i) run_.Run("Stage", {.attrs = attrs, .list = {Floats({2})}});
    run_.Run("Unstage", {.attrs = attrs});
  }
  // Runs the ops on accumulators. Only the first worker takes gradients: a second one could wait
  // forever for gradients that the first one has taken.
  void Gather() {
    const Tensor dense = HandleOf("dense", ""), sparse = HandleOf("sparse", "", /*ref=*/true);
    const Tensor step = Tensor::Scalar<int64_t>(1 << 20);
    run_.Run("ResourceAccumulatorApplyGradient", {{dense, step, Floats({2})}});
    run_.Run("SparseAccumulatorApplyGradient",
             {.inputs = {sparse, step, Tensor::Vector<int64_t>({Below(4), Below(4)}),
                         Floats({2, 2}), Tensor::Vector<int64_t>({})},
              .attrs = {{"has_known_shape", false}}});
    if (number_ != 0) return;
    const Tensor one = Tensor::Scalar<int32_t>(1);
    run_.Run("ResourceAccumulatorTakeGradient", {{dense, one}, Float("dtype")});
    run_.Run("SparseAccumulatorTakeGradient", {{sparse, one}, Float("dtype")});
    run_.Run("ResourceAccumulatorSetGlobalStep", {{dense, Tensor::Scalar<int64_t>(Below(9))}});
  }
  void Barrier() {
    const Tensor barrier = HandleOf("barrier", "", /*ref=*/true);
    const std::string key = StrCat(number_, "/", keys_++);
    for (int64_t component = 0; component < 2; ++component) {
      run_.Run("BarrierInsertMany",
               {{barrier, Tensor::Vector<std::string>({key, key + "b"}), Floats({2, 2})},
                {{"component_index", component}}});
    }
    run_.Run("BarrierTakeMany",
             {{barrier, Tensor::Scalar<int32_t>(1 + Below(2))},
              {{"component_types", std::vector<DType>{DType::kFloat, DType::kFloat}}}});
  }
  // Makes and assigns a variable of this worker; in half of the calls it then destroys the
  // variable.
  void Remake() {
    const std::string name = StrCat("own", number_);
    const auto made = run_.Run(
        "VarHandleOp",
        {.attrs = {{"shape", Shape({2})}, {"dtype", DType::kFloat}, {"shared_name", name}}});
    run_.Run("AssignVariableOp", {{made[0], Floats({2})}});
    if (Below(2) == 0) return;
    run_.Run("DestroyResourceOp", {{HandleOf(name, "Variable")}});
    run_.Run("AssignVariableOp",
             {{made[0], Floats({2})}});  // an op that never reads the variable's value
  }

  const LoggedStore& run_;
  const int number_;
  std::mt19937 random_;
  int keys_ = 0;
};

void MakeResources(const LoggedStore& run) {
  const auto variable = [&](const std::string& name, const Tensor& value) {
    const auto handle = run.Run(
        "VarHandleOp",
        {.attrs = {{"shape", value.shape()}, {"dtype", value.dtype()}, {"shared_name", name}}});
    run.Run("AssignVariableOp", {{handle[0], value}});
  };
  const Tensor ones = Tensor::Of<float>({kBatchRows, kBatchColumns},
                                        std::vector<float>(kBatchRows * kBatchColumns, 1));
  for (int i = 0; i < kVariables; ++i) variable(StrCat("v", i), ones);
  variable("slot", ones);
  variable("generator", Tensor::Vector<int64_t>({0, 0, 42}));
  const Attrs queue = {{"component_types", std::vector<DType>{DType::kFloat}},
                       {"shapes", std::vector<PartialShape>{PartialShape({2})}}};
  const auto named = [](Attrs attrs, const char* name) {
    attrs["shared_name"] = name;
    return attrs;
  };
  run.Run("FIFOQueueV2", {.attrs = named(queue, "fifo")});
  run.Run("RandomShuffleQueueV2", {.attrs = named(queue, "shuffle")});
  Attrs tuple = queue;
  tuple["component_types"] = std::vector<DType>{DType::kFloat, DType::kFloat};
  tuple["shapes"] = std::vector<PartialShape>{PartialShape({2}), PartialShape({2})};
  run.Run("Barrier", {.attrs = named(tuple, "barrier")});
  const Attrs table = {{"key_dtype", DType::kString}, {"value_dtype", DType::kFloat}};
  run.Run("MutableHashTableV2", {.attrs = named(table, "table")});
  const Attrs gradient = {{"dtype", DType::kFloat}, {"shape", PartialShape({2})}};
  run.Run("ResourceConditionalAccumulator", {.attrs = named(gradient, "dense")});
  const Attrs rows = {{"dtype", DType::kFloat}, {"shape", PartialShape({-1, 2})}};
  run.Run("SparseConditionalAccumulator", {.attrs = named(rows, "sparse")});
}

// Returns the text of everything in a store; removes the elements of queues and other containers.
std::string Drain(const std::shared_ptr<ResourceStore>& store) {
  std::string text = TextOf(*store);
  const auto run = [&](const char* op, const std::vector<Tensor>& inputs, const Attrs& attrs) {
    OpRunner runner(op, store);
    for (const Tensor& input : inputs) runner.In(input);
    for (const auto& [name, value] : attrs) runner.Attr(name, value);
    const auto outputs = runner.Run();
    StrAppend(&text, op, " ", outputs.status().ToString(), "\n");
    if (!outputs.ok()) return;
    for (const Tensor& output : *outputs) {
      StrAppend(&text, output.ToString(100000), "\n");
      if (!IsPlain(output.dtype())) continue;
      text.append(static_cast<const char*>(output.raw_data()), output.bytes());
    }
  };
  const Attrs one_float = {{"component_types", std::vector<DType>{DType::kFloat}}};
  const Tensor all = Tensor::Scalar<int32_t>(1 << 20), one = Tensor::Scalar<int32_t>(1);
  for (const char* name : {"fifo", "shuffle"}) {
    run("QueueCloseV2", {HandleOf(name, "")}, {});
    run("QueueDequeueUpToV2", {HandleOf(name, ""), all}, one_float);
  }
  run("LookupTableExportV2", {HandleOf("table", "")},
      {{"Tkeys", DType::kString}, {"Tvalues", DType::kFloat}});
  const Tensor barrier = HandleOf("barrier", "", true), sparse = HandleOf("sparse", "", true);
  run("BarrierClose", {barrier}, {});
  run("BarrierTakeMany", {barrier, all},
      {{"component_types", std::vector<DType>{DType::kFloat, DType::kFloat}},
       {"allow_small_batch", true}});
  const Tensor step = Tensor::Scalar<int64_t>(1 << 20);
  run("ResourceAccumulatorApplyGradient",
      {HandleOf("dense", ""), step, Tensor::Vector<float>({1, 2})}, {});
  run("ResourceAccumulatorTakeGradient", {HandleOf("dense", ""), one}, {{"dtype", DType::kFloat}});
  run("SparseAccumulatorApplyGradient",
      {sparse, step, Tensor::Vector<int64_t>({1}), Tensor::Of<float>({1, 2}, {1, 2}),
       Tensor::Vector<int64_t>({})},
      {{"has_known_shape", false}});
  run("SparseAccumulatorTakeGradient", {sparse, one}, {{"dtype", DType::kFloat}});
  const Attrs area = {{"shared_name", "area"}, {"dtypes", std::vector<DType>{DType::kFloat}}};
  OpRunner size("StageSize", store);
  for (const auto& [name, value] : area) size.Attr(name, value);
  for (int i = size.Run1()->scalar<int32_t>(); i > 0; --i) run("Unstage", {}, area);
  return text;
}

class Replay : public testing::TestWithParam<int> {};

TEST_P(Replay, GivesTheSameBytes) {
  LoggedStore run;
  MakeResources(run);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] { Worker(run, t, GetParam()).Steps(60); });
  }
  for (std::thread& thread : threads) thread.join();

  const auto replica = std::make_shared<ResourceStore>();
  RecordingLog replica_log;
  ASSERT_TRUE(replica->AttachLog(&replica_log).ok());
  const Status replayed = run.log().ReplayOn(*replica);
  ASSERT_TRUE(replayed.ok()) << replayed;
  EXPECT_GT(run.log().entries().size(), 400);
  EXPECT_EQ(TextOf(*replica), TextOf(*run.store()));
  EXPECT_EQ(Drain(replica), Drain(run.store()));
  // Later changes of the two stores are the same, too.
  EXPECT_EQ(replica_log.Texts().back(), run.log().Texts().back());
}

INSTANTIATE_TEST_SUITE_P(Seeds, Replay, testing::Values(1, 2, 3));

}  // namespace
}  // namespace penstock
