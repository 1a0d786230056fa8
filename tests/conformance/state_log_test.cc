// SPDX-License-Identifier: Apache-2.0
//
// Runs every op that has a resource or a ref among its inputs with a StateLog. Each change of the
// store must be in the log, with the name of the node that has made it, and a store made from the
// log must have the same contents. For ops on variables the calls are the samples of the registry;
// ops on other resources are called in the tests below. An op that is not called at all fails the
// test.
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/op/op_def.h"
#include "core/op/registry.h"
#include "gtest/gtest.h"
#include "tests/conformance/logged_store.h"
#include "tests/conformance/samples.h"

namespace penstock {
namespace {

using Types = std::vector<DType>;
using PartialShapes = std::vector<PartialShape>;

const Types kFloats = {DType::kFloat};
Tensor Int(int32_t value) { return Tensor::Scalar(value); }
Tensor Long(int64_t value) { return Tensor::Scalar(value); }
Tensor Words(const std::vector<std::string>& words) { return Tensor::Vector(words); }
Tensor Floats(const std::vector<float>& values) { return Tensor::Vector(values); }

// Returns whether this test has to call the op, because the op may change the resource behind an
// input.
bool HasHandle(const OpDef& op) {
  if (!op.untestable_alone.empty()) return false;  // the op cannot run alone; other tests cover it
  if (op.flow != FlowOp::kNone)
    return false;  // the op passes a handle on; only the executor can run it
  for (const ArgDef& input : op.inputs) {
    if (input.type.ref || input.type.type == "resource") return true;
  }
  return false;
}

// Returns the ops that have been tested so far.
std::set<std::string>& Covered() {
  static auto& covered = *new std::set<std::string>;
  return covered;
}

// Checks that no change was missed, and that replaying the log gives the same state, unless
// `opaque` says why it cannot.
void Finish(LoggedStore& scene, const char* opaque = nullptr) {
  Covered().insert(scene.watched().begin(), scene.watched().end());
  for (const std::string& fault : scene.faults()) ADD_FAILURE() << fault;
  ResourceStore replica;
  const Status replayed = scene.log().ReplayOn(replica);
  if (opaque != nullptr) {
    EXPECT_EQ(replayed.code(), StatusCode::kUnimplemented);
    EXPECT_NE(replayed.message().find(opaque), string_view::npos) << replayed;
    return;
  }
  ASSERT_TRUE(replayed.ok()) << replayed;
  EXPECT_EQ(TextOf(replica), TextOf(*scene.store()));
}

void OpsOnVariables() {
  for (const OpDef* op : Registry::Global().ops()) {
    if (!HasHandle(*op)) continue;
    std::vector<std::unique_ptr<LoggedStore>> scenes;
    const auto samples = SamplesOf(*op, [&] {
      scenes.push_back(std::make_unique<LoggedStore>());
      return scenes.back()->store();
    });
    if (!samples.ok()) continue;
    for (size_t i = 0; i < samples->size(); ++i) {
      const SampleCall& call = (*samples)[i];
      LoggedStore& scene = *scenes[i];
      const std::string before = TextOf(*scene.store());
      const size_t records = scene.log().entries().size();
      if (!call.Run(call.Inputs()).ok()) continue;  // the op does not work on variables
      SCOPED_TRACE(call.label);
      scene.CheckRecords(op->name, records, before);
      Finish(scene);
    }
  }
}

void Queues() {
  for (const std::string v : {"", "V2"}) {
    for (const char* type : {"FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue"}) {
      LoggedStore scene;
      const Attrs components = {{"component_types", kFloats}};
      Attrs attrs = components;
      attrs["shapes"] = PartialShapes{PartialShape::Scalar()};
      const Tensor queue = scene.Watch(type + v, {.attrs = attrs})[0];
      scene.Watch("QueueEnqueue" + v, {.inputs = {queue}, .list = {Tensor::Scalar(1.f)}});
      scene.Watch("QueueEnqueueMany" + v, {.inputs = {queue}, .list = {Floats({2, 3, 4, 5, 6})}});
      scene.Watch("QueueDequeue" + v, {{queue}, components});
      scene.Watch("QueueDequeueMany" + v, {{queue, Int(2)}, components});
      scene.Watch("QueueDequeueUpTo" + v, {{queue, Int(1)}, components});
      scene.Watch("QueueSize" + v, {{queue}});
      if (v == "V2") scene.Watch("FakeQueue", {{queue}});
      scene.Watch("QueueClose" + v, {{queue}});
      scene.Watch("QueueIsClosed" + v, {{queue}});
      Finish(scene);
    }
  }
}

void Readers() {
  for (const std::string v : {"", "V2"}) {
    LoggedStore scene;
    const Tensor queue =
        scene.Watch("FIFOQueue" + v, {.attrs = {{"component_types", Types{DType::kString}}}})[0];
    const Tensor names = Words({"a", "b", "c"});
    for (const char* name : {"a", "b", "c"}) {
      scene.Watch("QueueEnqueue" + v,
                  {.inputs = {queue}, .list = {Tensor::Scalar<std::string>(name)}});
    }
    const Tensor reader = scene.Watch("IdentityReader" + v)[0];
    scene.Watch("ReaderRead" + v, {{reader, queue}});
    scene.Watch("ReaderReadUpTo" + v, {{reader, queue, Long(5)}});
    scene.Watch("ReaderNumRecordsProduced" + v, {{reader}});
    scene.Watch("ReaderNumWorkUnitsCompleted" + v, {{reader}});
    const Tensor state = scene.Watch("ReaderSerializeState" + v, {{reader}})[0];
    scene.Watch("ReaderReset" + v, {{reader}});
    scene.Watch("ReaderRestoreState" + v, {{reader, state}});
    // The last record has the saved state.
    EXPECT_EQ(scene.log().entries().back().parts[0].values[0].ToString(), state.ToString());
    Finish(scene, "a IdentityReader cannot be replayed: it reads files outside of its store");
  }
}

void Accumulators() {
  for (const std::string v : {"", "Resource"}) {
    LoggedStore scene;
    const Attrs attrs = {{"dtype", DType::kFloat}, {"shape", PartialShape({2})}};
    const Tensor sum = scene.Watch(v + "ConditionalAccumulator", {.attrs = attrs})[0];
    scene.Watch(v + "AccumulatorApplyGradient", {{sum, Long(0), Floats({1, 2})}});
    scene.Watch(v + "AccumulatorNumAccumulated", {{sum}});
    scene.Watch(v + "AccumulatorTakeGradient", {{sum, Int(1)}, {{"dtype", DType::kFloat}}});
    scene.Watch(v + "AccumulatorSetGlobalStep", {{sum, Long(7)}});
    scene.Watch(v + "AccumulatorApplyGradient",
                {{sum, Long(1), Floats({1, 2})}});  // too late to change anything
    Finish(scene);
  }
  LoggedStore scene;
  const Attrs attrs = {{"dtype", DType::kFloat}, {"shape", PartialShape({-1, 1})}};
  const Tensor sum = scene.Watch("SparseConditionalAccumulator", {.attrs = attrs})[0];
  for (int i = 0; i < 2; ++i) {
    scene.Watch("SparseAccumulatorApplyGradient",
                {{sum, Long(5), Tensor::Vector<int64_t>({1}), Tensor::Of<float>({1, 1}, {3}),
                  Tensor::Vector<int64_t>({4, 1})},
                 {{"has_known_shape", true}}});
    if (i > 0) break;
    scene.Watch("SparseAccumulatorTakeGradient", {{sum, Int(1)}, {{"dtype", DType::kFloat}}});
  }
  Finish(scene);
}

void Barriers() {
  LoggedStore scene;
  const Types two = {DType::kFloat, DType::kFloat};
  const PartialShapes shapes = {PartialShape::Scalar(), PartialShape::Scalar()};
  const Attrs attrs = {{"component_types", two}, {"shapes", shapes}};
  const Tensor barrier = scene.Watch("Barrier", {.attrs = attrs})[0];
  const auto insert = [&](int64_t component, const std::vector<std::string>& keys) {
    scene.Watch("BarrierInsertMany",
                {{barrier, Words(keys), Floats(std::vector<float>(keys.size(), 1))},
                 {{"component_index", component}}});
  };
  insert(0, {"a", "b", "c"});
  insert(1, {"b", "a"});
  scene.Watch("BarrierTakeMany", {{barrier, Int(1)}, {{"component_types", two}}});
  scene.Watch("BarrierReadySize", {{barrier}});
  scene.Watch("BarrierIncompleteSize", {{barrier}});
  // An insertion that fails half-way has inserted the elements before the failure.
  OpRunner failing("BarrierInsertMany", scene.store());
  EXPECT_FALSE(failing.In(barrier)
                   .In(Words({"d", "c", "e"}))
                   .In(Floats({1, 2, 3}))
                   .Attr("component_index", int64_t{0})
                   .Run()
                   .ok());
  insert(1, {"d"});
  scene.Watch("BarrierClose", {{barrier}, {{"cancel_pending_enqueues", true}}});
  Finish(scene);
}

void Tables() {
  const std::string path = testing::TempDir() + "/words.txt";
  std::ofstream(path) << "x\ny\n";
  for (const std::string v : {"", "V2"}) {
    LoggedStore scene;
    const Attrs types = {{"key_dtype", DType::kString}, {"value_dtype", DType::kInt64}};
    const auto numbers = [](int64_t a, int64_t b) { return Tensor::Vector<int64_t>({a, b}); };
    const Tensor table = scene.Watch("MutableHashTable" + v, {.attrs = types})[0];
    scene.Watch("LookupTableInsert" + v, {{table, Words({"a", "b"}), numbers(1, 2)}});
    scene.Watch("LookupTableInsert" + v, {{table, Words({"c", "b"}), numbers(3, 4)}});
    if (v == "V2") scene.Watch("LookupTableRemoveV2", {{table, Words({"a"})}});
    scene.Watch("LookupTableFind" + v, {{table, Words({"a"}), Long(0)}});
    scene.Watch("LookupTableSize" + v, {{table}});
    const auto all =
        scene.Watch("LookupTableExport" + v,
                    {{table}, {{"Tkeys", DType::kString}, {"Tvalues", DType::kInt64}}});
    scene.Watch("LookupTableImport" + v, {{table, all[0], all[1]}});
    const Tensor once = scene.Watch("HashTable" + v, {.attrs = types})[0];
    scene.Watch("InitializeTable" + v, {{once, Words({"a", "b"}), numbers(1, 2)}});
    Attrs named = types;
    named["shared_name"] = "from_file";
    const Tensor from_file = scene.Watch("HashTable" + v, {.attrs = named})[0];
    scene.Watch("InitializeTableFromTextFile" + v,
                {{from_file, Tensor::Scalar(path)},
                 {{"key_index", int64_t{-2}}, {"value_index", int64_t{-1}}}});
    Finish(scene);
  }
}

void DynamicTables() {
  LoggedStore scene;
  const Attrs attrs = {{"width", int64_t{2}}, {"slots", std::vector<float>{0.1f, 0}}};
  const Tensor table = scene.Watch("DynamicTable", {.attrs = attrs})[0];
  const Tensor ids = Tensor::Vector<int64_t>({3, -5});
  const Tensor grad = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  const Tensor rate = Tensor::Scalar(0.1f), power = Tensor::Scalar(-0.5f);
  scene.Watch("DynamicTableApplyAdam", {{table, ids, grad, Long(1), rate, rate, rate, rate}});
  scene.Watch("DynamicTableApplyFtrl", {{table, ids, grad, Long(2), rate, rate, rate, power}});
  scene.Watch("DynamicTablePull", {{table, ids}});
  scene.Watch("DynamicTableSize", {{table}});
  scene.Watch(
      "DynamicTableExport",
      {{table}, {{"N", int64_t{1}}, {"buckets", int64_t{1}}, {"wanted", std::vector<int64_t>{0}}}});
  scene.Watch("DynamicTableErase", {{table, Tensor::Vector<int64_t>({3})}});
  scene.Watch("DynamicTableClear", {{table}});
  // An update by an optimizer without slots, and one by an optimizer with one slot.
  const Tensor plain =
      scene.Watch("DynamicTable", {.attrs = {{"width", int64_t{2}}, {"shared_name", "plain"}}})[0];
  scene.Watch("DynamicTableApplyGradientDescent", {{plain, ids, grad, Long(1), rate}});
  const Tensor one = scene.Watch(
      "DynamicTable",
      {.attrs = {
           {"width", int64_t{2}}, {"shared_name", "one"}, {"slots", std::vector<float>{0.1f}}}})[0];
  scene.Watch("DynamicTableApplyAdagrad", {{one, ids, grad, Long(1), rate}});
  // The op has five list arguments. LoggedStore supports only one list, as the last argument, so
  // this uses OpRunner.
  OpRunner import("DynamicTableImport", scene.store());
  const std::string before = TextOf(*scene.store());
  const size_t records = scene.log().entries().size();
  ASSERT_TRUE(import.In(one)
                  .InList({ids})
                  .InList({grad})
                  .InList({grad.Reshaped({2, 1, 2})})
                  .InList({Tensor::Vector<int64_t>({1, 1})})
                  .InList({Tensor::Vector<int64_t>({7, 7})})
                  .Run()
                  .ok());
  scene.CheckRecords("DynamicTableImport", records, before);
  const Attrs bucket = {
      {"N", int64_t{1}}, {"buckets", int64_t{1}}, {"wanted", std::vector<int64_t>{0}}};
  const Tensor none = Tensor::Scalar(std::string());
  const auto changes = scene.Watch("DynamicTableExportChanges",
                                   {{one, Tensor::Scalar(std::string("a")), none, none}, bucket});
  OpRunner merge("DynamicTableMerge", scene.store());
  const std::string before_merge = TextOf(*scene.store());
  const size_t records_before_merge = scene.log().entries().size();
  merge.In(one).Attr("buckets", int64_t{1}).Attr("wanted", std::vector<int64_t>{0});
  for (const Tensor& tensor : changes) merge.InList({tensor});
  ASSERT_TRUE(merge.Run().ok());
  scene.CheckRecords("DynamicTableMerge", records_before_merge, before_merge);
  Finish(scene);
}

void WhatIsNamedWithoutAHandle() {
  LoggedStore scene;
  const Attrs area = {{"dtypes", kFloats}, {"shared_name", "area"}};
  for (int i = 0; i < 3; ++i) scene.Watch("Stage", {.attrs = area, .list = {Floats({1})}});
  scene.Watch("Unstage", {.attrs = area});
  scene.Watch("StageClear", {.attrs = area});
  const Tensor kept = scene.Watch("GetSessionHandle", {{Floats({1, 2})}})[0];
  scene.Watch("GetSessionHandleV2", {{Floats({3})}});
  scene.Watch("DeleteSessionTensor", {{kept}});
  const Tensor mutex = scene.Watch("MutexV2")[0];
  Tensor lock = scene.Watch("MutexLock", {{mutex}})[0];
  lock = Tensor();
  EXPECT_EQ(scene.log().entries().back().parts[0].action, "unlock");
  Finish(scene);
}

void VariablesOfOtherKinds() {
  LoggedStore scene;
  const Tensor state =
      scene.Watch("VarHandleOp", {.attrs = {{"dtype", DType::kInt64}, {"shape", Shape({3})}}})[0];
  scene.Watch("AssignVariableOp", {{state, Tensor::Vector<int64_t>({1, 2, 3})}});
  scene.Watch("RngReadAndSkip", {{state, Int(1), Tensor::Scalar<uint64_t>(5)}});
  scene.Watch("RngSkip", {{state, Long(1), Long(6)}});
  const Tensor size = Tensor::Vector<int64_t>({3});
  for (const char* op :
       {"StatefulUniform", "StatefulStandardNormalV2", "StatefulTruncatedNormal"}) {
    scene.Watch(op, {{state, Long(1), size}, {{"dtype", DType::kFloat}}});
  }
  scene.Watch("StatefulUniformFullInt", {{state, Long(1), size}, {{"dtype", DType::kUint64}}});
  scene.Watch("StatefulUniformInt",
              {{state, Long(1), size, Long(2), Long(9)}, {{"dtype", DType::kInt64}}});
  scene.Watch("StatefulRandomBinomial",
              {{state, Long(1), size, Tensor::Scalar(7.0f), Tensor::Scalar(0.5f)}});
  scene.Watch("DestroyResourceOp", {{state}});
  const Attrs attrs = {
      {"dtype", DType::kFloat}, {"shape", PartialShape({2})}, {"var_name", "temporary"}};
  const Tensor temporary = scene.Watch("TemporaryVariable", {.attrs = attrs, .in_step = true})[0];
  scene.Watch("Assign", {{temporary, Floats({1, 2})}});
  scene.Watch("DestroyTemporaryVariable",
              {.inputs = {temporary}, .attrs = {{"var_name", "temporary"}}, .in_step = true});
  Finish(scene);
}

void Stacks() {
  for (const std::string v : {"", "V2"}) {
    LoggedStore scene;
    OpCall make{.attrs = {{"elem_type", DType::kFloat}}, .in_step = true};
    if (v == "V2") make.inputs = {Int(-1)};
    const Tensor stack = scene.Watch("Stack" + v, make)[0];
    scene.Watch("StackPush" + v, {.inputs = {stack, Floats({1})}, .in_step = true});
    scene.Watch("StackPop" + v, {.inputs = {stack}, .attrs = make.attrs, .in_step = true});
    scene.Watch("StackClose" + v, {.inputs = {stack}, .in_step = true});
    Finish(scene, "a Stack cannot be replayed: it lives within one step");
  }
}

void TensorArrays() {
  for (const std::string v : {"", "V2", "V3"}) {
    LoggedStore scene;
    const Tensor flow = Tensor::Scalar(0.f);
    const Attrs dtype = {{"dtype", DType::kFloat}};
    const auto op = [&](const char* name, std::vector<Tensor> inputs, Attrs attrs = {}) {
      return scene.Watch(StrCat("TensorArray", name, v),
                         {.inputs = std::move(inputs), .attrs = std::move(attrs), .in_step = true});
    };
    Attrs make = dtype;
    make["dynamic_size"] = true;
    make["clear_after_read"] = false;
    const Tensor array = op("", {Int(6)}, make)[0];
    op("Write", {array, Int(0), Floats({1}), flow});
    op("Read", {array, Int(0), flow}, dtype);
    const Tensor places = Tensor::Vector<int32_t>({1, 2});
    if (v.empty()) {
      op("Unpack", {op("", {Int(2)}, {{"dtype", DType::kFloat}, {"tensor_array_name", "p"}})[0],
                    Tensor::Of<float>({2, 1}, {1, 2}), flow});
    }
    op("Scatter", {array, places, Tensor::Of<float>({2, 1}, {1, 2}), flow});
    op("Gather", {array, places, flow}, dtype);
    const Tensor split = op("", {Int(2)}, make)[0];
    op("Split", {split, Floats({1, 2, 3}), Tensor::Vector<int64_t>({1, 2}), flow});
    op("Concat", {split, flow}, dtype);
    if (v.empty()) {
      const Tensor packed = op("", {Int(2)}, make)[0];
      op("Unpack", {packed, Tensor::Of<float>({2, 1}, {1, 2}), flow});
      op("Pack", {packed, flow}, dtype);
    }
    Tensor source = array;
    if (v.empty()) {  // this version takes the two strings of the handle
      const auto& handle = array.scalar<ResourceHandle>();
      source = Words({handle.container, handle.name});
    }
    op("Grad", {source, flow}, {{"source", "g"}});
    if (v == "V3") {
      scene.Watch("TensorArrayGradWithShape",
                  {.inputs = {array, flow, Tensor::Vector<int32_t>({2})},
                   .attrs = {{"source", "h"}},
                   .in_step = true});
    }
    op("Size", {array, flow});
    op("Close", {array});
    Finish(scene, "a TensorArray cannot be replayed: it lives within one step");
  }
}

void Iterators() {
  LoggedStore scene;
  const Attrs spec = {{"output_types", Types{DType::kInt64}},
                      {"output_shapes", std::vector<PartialShape>{PartialShape::Scalar()}}};
  Attrs named = spec;
  named["shared_name"] = "iterator";
  named["container"] = "";
  const Tensor range =
      scene.Watch("RangeDataset", {.inputs = {Long(0), Long(9), Long(1)}, .attrs = spec})[0];
  const auto seeds =
      scene.Watch("AnonymousSeedGenerator", {.inputs = {Long(1), Long(2), Tensor::Scalar(true)}});
  const Tensor shuffled = scene.Watch("ShuffleDatasetV2", {{range, Long(3), seeds[0]}, spec})[0];
  scene.Watch("ShuffleDatasetV3", {{range, Long(3), Long(1), Long(2), seeds[0]}, spec});
  scene.Watch("ShuffleAndRepeatDatasetV2",
              {{range, Long(3), Long(1), Long(2), Long(1), seeds[0]}, spec});
  scene.Watch("RandomDatasetV2", {{Long(1), Long(2), seeds[0]}, spec});
  scene.Watch("DeleteSeedGenerator", {{seeds[0], seeds[1]}});
  scene.Watch("DeleteRandomSeedGenerator", {{seeds[0], seeds[1]}});
  const auto cache = scene.Watch("AnonymousMemoryCache");
  const Tensor one =
      scene.Watch("RangeDataset", {.inputs = {Long(0), Long(1), Long(1)}, .attrs = spec})[0];
  const Tensor cached =
      scene.Watch("CacheDatasetV2", {{one, Tensor::Scalar<std::string>(""), cache[0]}, spec})[0];
  scene.Watch("DeleteMemoryCache", {{cache[0], cache[1]}});
  const Tensor iterator = scene.Watch("IteratorV2", {.attrs = named})[0];
  scene.WatchChange("MakeIterator", {{range, iterator}});
  scene.WatchChange("IteratorGetNext", {{iterator}, spec});
  scene.WatchChange("IteratorGetNextSync", {{iterator}, spec});
  scene.WatchChange("IteratorGetNextAsOptional", {{iterator}, spec});
  scene.Watch("IteratorToStringHandle", {{iterator}});
  const Tensor state = scene.Watch("SerializeIterator", {{iterator}})[0];
  scene.WatchChange("DeserializeIterator", {{iterator, state}});
  // Seeds and caches are in no store, only behind handles, but have versions too.
  const int64_t seeds_before = VersionOf(seeds[0]), cache_before = VersionOf(cache[0]);
  scene.WatchChange("MakeIterator", {{shuffled, iterator}});
  EXPECT_GT(VersionOf(seeds[0]), seeds_before);
  scene.WatchChange("MakeIterator", {{cached, iterator}});
  scene.WatchChange("IteratorGetNext", {{iterator}, spec});
  EXPECT_EQ(VersionOf(cache[0]), cache_before);
  OpRunner last("IteratorGetNext", scene.store());
  last.In(iterator);
  for (const auto& [name, value] : spec) last.Attr(name, value);
  EXPECT_EQ(last.Run().status().code(), StatusCode::kOutOfRange);
  EXPECT_GT(VersionOf(cache[0]), cache_before);
  scene.WatchChange("DeleteIterator", {{iterator, seeds[1]}});
  Finish(scene, "a Iterator cannot be replayed: its dataset may read files and functions");
}

void Snapshots() {
  LoggedStore scene;
  const Tensor variable =
      scene.Watch("VarHandleOp", {.attrs = {{"dtype", DType::kFloat}, {"shape", Shape({2})}}})[0];
  scene.WatchChange("AssignVariableOp", {{variable, Floats({1, 2})}});
  const Tensor save = Tensor::Scalar<std::string>("save");
  const Attrs named = {{"shared_name", "snapshot"}};
  Attrs typed = named;
  typed["dtypes"] = kFloats;
  scene.Watch("SnapshotCopyAhead", {.inputs = {save}, .attrs = named, .list = {variable}});
  scene.WatchChange("SnapshotCopyAhead", {.inputs = {save}, .attrs = named, .list = {variable}});
  const auto cut =
      scene.WatchChange("SnapshotCut", {.inputs = {save}, .attrs = typed, .list = {variable}});
  scene.WatchChange("SnapshotKeep", {.inputs = {save}, .attrs = named, .list = cut});
  scene.WatchChange("SnapshotTake", {.inputs = {save}, .attrs = typed});
  Finish(scene, "a Snapshot cannot be replayed: it lives within one save");
}

void SummaryWriters() {
  LoggedStore scene;
  const Tensor writer = scene.Watch("SummaryWriter")[0];
  const Tensor name = Tensor::Scalar<std::string>("x");
  scene.WatchChange("CreateSummaryFileWriter",
                    {{writer, Tensor::Scalar(testing::TempDir() + "/events"), Int(10), Int(1000),
                      Tensor::Scalar<std::string>("")}});
  scene.WatchChange("WriteScalarSummary", {{writer, Long(1), name, Tensor::Scalar(1.f)}});
  const Tensor empty = Tensor::Scalar<std::string>("");
  scene.WatchChange("WriteGraphSummary", {{writer, Long(1), empty}});
  scene.WatchChange("ImportEvent", {{writer, empty}});
  scene.WatchChange("FlushSummaryWriter", {{writer}});
  scene.WatchChange("CloseSummaryWriter", {{writer}});
  Finish(scene, "cannot be replayed: it writes a file");
}

TEST(StateLogConformance, SeesEveryChangeOfEveryOp) {
  OpsOnVariables();
  Queues();
  Readers();
  Accumulators();
  Barriers();
  Tables();
  DynamicTables();
  WhatIsNamedWithoutAHandle();
  VariablesOfOtherKinds();
  Stacks();
  TensorArrays();
  Iterators();
  Snapshots();
  SummaryWriters();
  for (const OpDef* op : Registry::Global().ops()) {
    if (!HasHandle(*op)) continue;
    EXPECT_TRUE(Covered().contains(op->name))
        << op->name << " takes a resource or a reference, but nothing here runs it with a log";
  }
}

}  // namespace
}  // namespace penstock
