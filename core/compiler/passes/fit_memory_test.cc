// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>
#include <vector>

#include "core/compiler/testing/test_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr double kBytes = 1'000'000;

// A step with five large tensors. Each is used in the forward pass and again in the backward pass.
struct Chain : TestProgram {
  Chain() {
    Node* x = Add("in", "Noise");
    std::vector<Node*> kept;
    for (int i = 0; i < 5; ++i) {
      x = Add(StrCat("kept", i), "Heavy", {{x, 0}});
      kept.push_back(x);
      x = Add(StrCat("small", i), "Product", {{x, 0}, {x, 0}});
      costs.RecordOutput(kept.back()->name(), 0, kBytes);
      costs.RecordOutput(x->name(), 0, 100);
    }
    for (int i = 4; i >= 0; --i) {
      x = Add(StrCat("back", i), "Product", {{x, 0}, {kept[i], 0}});
      costs.RecordOutput(x->name(), 0, 100);
    }
    costs.RecordOutput("in", 0, 100);
    options.costs = &costs;
  }
  CostTable costs;
};

TEST(FitMemoryTest, PredictsWhenAsked) {
  Chain p;
  ASSERT_TRUE(p.Compile({}, {"back0:0"}).ok());
  EXPECT_TRUE(p.report.memory.devices.empty());
  p.options.predict = true;
  ASSERT_TRUE(p.Compile({}, {"back0:0"}).ok());
  ASSERT_EQ(p.report.memory.devices.size(), 1u);
  const MemoryReport::Device& device = p.report.memory.devices[0];
  EXPECT_EQ(device.device, kWorker);
  EXPECT_NEAR(device.peak_bytes, 5 * kBytes, 0.02 * kBytes);
  EXPECT_EQ(device.peak_bytes, device.naive_bytes);
  ASSERT_GE(device.largest.size(), 5u);
  EXPECT_NEAR(device.largest[0].bytes, kBytes, 4096);
  EXPECT_THAT(device.largest[0].name, HasSubstr("kept"));
  EXPECT_THAT(ToString(p.report), HasSubstr("peak 5017.8 kB of the step's tensors"));
}

TEST(FitMemoryTest, AStepThatFitsStaysAsItIs) {
  Chain p;
  p.options.memory_limit = static_cast<int64_t>(7 * kBytes);
  ASSERT_TRUE(p.Compile({}, {"back0:0"}).ok());
  EXPECT_FALSE(p.report.memory.ordered);
  EXPECT_EQ(p.After("memory").num_nodes(), p.After("compress").num_nodes());
}

TEST(FitMemoryTest, AStepThatDoesNotIsChangedUntilItDoes) {
  Chain p;
  p.options.memory_limit = static_cast<int64_t>(3 * kBytes);
  ASSERT_TRUE(p.Compile({}, {"back0:0"}).ok());
  const MemoryReport& report = p.report.memory;
  EXPECT_LE(report.devices.at(0).peak_bytes, 3 * kBytes);
  EXPECT_GT(report.devices[0].naive_bytes, 4.9 * kBytes);
  EXPECT_GT(report.num_recomputed, 0);
  EXPECT_THAT(ToString(p.report), HasSubstr("nodes run again, 0 tensors swapped"));
}

// Layers on kWorker. Each reads a weight from kPs, and makes a large tensor that is needed at the
// end.
struct DistantWeights : TestProgram {
  static constexpr int kLayers = 12;
  static constexpr double kWeight = 4e6, kKept = 2e6;

  DistantWeights() {
    Node* last = Add("x", "Input", {}, {.device = kWorker});
    std::vector<Node*> kept;
    for (int i = 0; i < kLayers; ++i) {
      const std::string layer = StrCat("layer", i), weight = StrCat("weight", i);
      Node* const variable = Add(StrCat("variable", i), "Var", {}, {.device = kPs});
      Node* const p = Add(weight, "Identity", {{variable, 0}}, {.device = kPs});
      last = Add(layer, "Product", {{last, 0}, {p, 0}}, {.device = kWorker});
      costs.RecordNode(layer, *DeviceName::Parse(kWorker), 1e7);
      costs.RecordNode(weight, *DeviceName::Parse(kPs), 1e3);
      costs.RecordOutput(weight, 0, kWeight);
      costs.RecordOutput(layer, 0, 1000);
      kept.push_back(Add(StrCat("kept", i), "Heavy", {{last, 0}}, {.device = kWorker}));
      costs.RecordNode(kept.back()->name(), *DeviceName::Parse(kWorker), 1e5);
      costs.RecordOutput(kept.back()->name(), 0, kKept);
      last = kept.back();
    }
    for (int i = kLayers - 1; i >= 0; --i) {
      const std::string name = StrCat("end", i);
      last = Add(name, "Product", {{last, 0}, {kept[i], 0}}, {.device = kWorker});
      costs.RecordNode(name, *DeviceName::Parse(kWorker), 1e5);
      costs.RecordOutput(name, 0, 1000);
    }
    options.costs = &costs;
    options.predict = true;
  }
  double WorkerPeak() const {
    for (const MemoryReport::Device& device : report.memory.devices) {
      if (device.device == kWorker) return device.peak_bytes;
    }
    return 0;
  }

  CostTable costs;
};

TEST(FitMemoryTest, CountsWhatIsSentLateWhenItIsSent) {
  DistantWeights early;
  early.options.disabled_passes = {"schedule"};
  ASSERT_TRUE(early.Compile({}, {"end0:0"}).ok());
  EXPECT_GT(early.WorkerPeak(), DistantWeights::kLayers * DistantWeights::kWeight);
  DistantWeights late;
  ASSERT_TRUE(late.Compile({}, {"end0:0"}).ok());
  EXPECT_LT(late.WorkerPeak(), early.WorkerPeak() / 1.5);
}

// Delaying the weights (pass "schedule") is not enough for this limit. The pass "memory" must also
// recompute tensors of the worker, and must keep the delays.
TEST(FitMemoryTest, KeepsWhatIsSentLateLate) {
  DistantWeights p;
  p.options.memory_limit = static_cast<int64_t>(5.5 * DistantWeights::kWeight);
  const Status status = p.Compile({}, {"end0:0"}).status();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_LE(p.WorkerPeak(), static_cast<double>(p.options.memory_limit));
  EXPECT_GT(p.report.memory.num_recomputed, 0);
  int late = 0;
  for (const Node* node : p.After("memory").nodes()) {
    if (!node->name().starts_with("_late_")) continue;
    ++late;
    ASSERT_FALSE(node->control_inputs().empty());
    EXPECT_EQ(node->control_inputs()[0]->assigned_device(), kWorker);
  }
  EXPECT_GT(late, 6);

  DistantWeights early;
  early.options.memory_limit = p.options.memory_limit;
  early.options.disabled_passes = {"schedule"};
  const Status refused = early.Compile({}, {"end0:0"}).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("weight0:0 (received)"));
}

TEST(FitMemoryTest, RefusesWhatCannotFit) {
  Chain p;
  p.options.memory_limit = static_cast<int64_t>(kBytes) / 2;
  const Status status = p.Compile({}, {"back0:0"}).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  const std::string text(status.message());
  EXPECT_THAT(text, HasSubstr("memory_limit: the step does not fit into 500000 bytes"));
  EXPECT_THAT(text, HasSubstr(kWorker));
  EXPECT_THAT(text, HasSubstr("1003520 bytes  "));
  EXPECT_THAT(text, HasSubstr("kept"));
}

// The worker sends six tensors to the parameter server. The predicted order assumes that each is
// read at once.
struct Sender : TestProgram {
  explicit Sender(const char* reader) {
    Node* last = nullptr;
    for (int i = 0; i < 6; ++i) {
      const std::string made = StrCat("made", i), read = StrCat("read", i);
      Node* const node = Add(made, "Noise", {}, {.device = kWorker});
      if (last != nullptr) graph.AddControlEdge(last, node);
      last = node;
      Add(read, reader, {{node, 0}}, {.device = kPs});
      costs.RecordOutput(made, 0, kBytes);
      targets.push_back(read);
    }
    options.costs = &costs;
  }
  // Returns the number of control edges from the parameter server to the worker.
  int NumWaits() const {
    int waits = 0;
    for (const Node* node : After("memory").nodes()) {
      for (const Node* before : node->control_inputs()) {
        waits += before->assigned_device() == kPs && node->assigned_device() == kWorker;
      }
    }
    return waits;
  }

  CostTable costs;
  std::vector<std::string> targets;
};

TEST(FitMemoryTest, WaitsForTheReadersOfWhatIsSent) {
  Sender w("Use");
  w.options.memory_limit = static_cast<int64_t>(7 * kBytes);
  EXPECT_TRUE(w.Compile({}, {}, w.targets).ok());
  EXPECT_EQ(w.NumWaits(), 0);
  w.options.memory_limit = static_cast<int64_t>(3 * kBytes);
  const Status status = w.Compile({}, {}, w.targets).status();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(w.NumWaits(), 5);
}

// Stage may wait for an Unstage without an edge between them, so nothing may wait for both.
TEST(FitMemoryTest, RefusesWhatBlockingReadersMayLetPileUp) {
  Sender w("Stage");
  w.options.memory_limit = static_cast<int64_t>(3 * kBytes);
  const Status status = w.Compile({}, {}, w.targets).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  const std::string text(status.message());
  EXPECT_THAT(text, HasSubstr("memory_limit: the step may take more than 3000000 bytes"));
  EXPECT_THAT(text, HasSubstr(kWorker));
  EXPECT_THAT(text, HasSubstr("made0:0"));
}

// Returns whether a path leads from one node to the other.
bool PathLeads(const Node* from, const Node* to) {
  std::set<const Node*> seen = {from};
  std::vector<const Node*> open = {from};
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    for (const OutEdge& edge : node->out_edges()) {
      if (seen.insert(edge.dst).second) open.push_back(edge.dst);
    }
    for (const Node* after : node->control_outputs()) {
      if (seen.insert(after).second) open.push_back(after);
    }
  }
  return seen.count(to) > 0;
}

// A client may fetch "back0" first and give "late" then.
TEST(FitMemoryTest, APartialRunDoesNotWaitForALateFeed) {
  Chain p;
  Node* const late = p.Add("late", "Ask");
  p.Add("used", "Use", {{late, 0}});
  for (const char* name : {"late", "_feed_late", "used"}) p.costs.RecordOutput(name, 0, 10'000);
  p.options.partial_run = true;
  p.options.memory_limit = static_cast<int64_t>(3 * kBytes);
  const auto compiled = p.Compile({"late:0"}, {"used:0", "back0:0"});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_TRUE(p.report.memory.ordered);
  const Graph& planned = p.After("memory");
  const Node *const feed = planned.FindNode("_feed_late"), *const fetch =
                                                               planned.FindNode("_fetch_back0");
  ASSERT_TRUE(feed != nullptr && fetch != nullptr);
  EXPECT_FALSE(PathLeads(feed, fetch)) << "the client would wait forever";
}

TEST(FitMemoryTest, RefusesLoopsAndNonsense) {
  LoopTestProgram p;
  p.options.memory_limit = 1;
  const Status loop = p.Compile({}, {"exit:0"}).status();
  EXPECT_EQ(loop.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(loop.message()), HasSubstr("has the loop 'f'"));
  Chain chain;
  chain.options.memory_limit = -1;
  EXPECT_EQ(chain.Compile({}, {"back0:0"}).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
