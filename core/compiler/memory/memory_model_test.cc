// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/memory/memory_model.h"

#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// A graph whose nodes run in the order in which they are added, on kWorker unless another device is
// given.
struct Step : TestProgram {
  Node* Run(const std::string& name, const std::string& op, std::vector<Endpoint> inputs,
            double bytes, const std::string& device = kWorker, const Attrs& attrs = {}) {
    Node* const node = Add(name, op, std::move(inputs), {.attrs = attrs});
    graph.set_assigned_device(node, device);
    if (node->num_outputs() > 0) costs.RecordOutput(name, 0, bytes);
    order.push_back(node);
    return node;
  }
  MemoryProfile Profile() const { return MemoryModel(graph, costs).Profile(order); }
  const MemoryProfile::Device& On(const MemoryProfile& profile, const std::string& device) const {
    const MemoryModel model(graph, costs);
    const auto& names = model.devices();
    return profile.devices[std::find(names.begin(), names.end(), device) - names.begin()];
  }

  CostTable costs;
  std::vector<Node*> order;
};

const Attrs kFetch = {{"T", DType::kFloat}, {"index", int64_t{0}}};

TEST(MemoryModelTest, AnOutputLivesUntilItsLastReaderHasEnded) {
  Step s;
  Node* const a = s.Run("a", "Input", {}, 1000);
  Node* const b = s.Run("b", "Heavy", {{a, 0}}, 300);
  Node* const c = s.Run("c", "Heavy", {{b, 0}}, 20);
  Node* const d = s.Run("d", "Sum2", {{a, 0}, {c, 0}}, 4);
  s.Run("e", "Heavy", {{d, 0}}, 1);
  const MemoryProfile profile = s.Profile();
  ASSERT_EQ(profile.devices.size(), 1u);
  EXPECT_EQ(profile.devices[0].during, (std::vector<double>{1000, 1300, 1320, 1024, 5}));
  EXPECT_EQ(profile.devices[0].peak_bytes, 1320);
  EXPECT_EQ(profile.devices[0].peak_at, 2);
  ASSERT_EQ(profile.buffers.size(), 5u);
  EXPECT_EQ(profile.buffers[0].end, 3);
  EXPECT_EQ(profile.buffers[4].end, 4) << "nothing reads it";
}

TEST(MemoryModelTest, LargeOnesTakeWholePages) {
  EXPECT_EQ(AllocatedBytes(32 << 10), 32 << 10);
  EXPECT_EQ(AllocatedBytes((32 << 10) + 1), 36 << 10);
}

TEST(MemoryModelTest, ViewsShareAndFetchesStay) {
  Step s;
  Node* const a = s.Run("a", "Input", {}, 1000);
  Node* const view = s.Run("view", "Identity", {{a, 0}}, 1000);
  s.Run("reader", "Heavy", {{a, 0}}, 7);
  s.Run("fetch", "_Fetch", {{view, 0}}, 0, kWorker, kFetch);
  s.Run("last", "Input", {}, 50);
  const MemoryProfile profile = s.Profile();
  EXPECT_EQ(profile.devices[0].during, (std::vector<double>{1000, 1000, 1007, 1000, 1050}));
  EXPECT_EQ(profile.buffers[0].end, 5);
}

TEST(MemoryModelTest, FeedsAndConstantsAreNotTheSteps) {
  Step s;
  const Attrs feed = {{"T", DType::kFloat}, {"index", int64_t{0}}};
  Node* const fed = s.Run("fed", "_Feed", {}, 500, kWorker, feed);
  Node* const k = s.Run("k", "Const", {}, 400, kWorker,
                        {{"dtype", DType::kFloat}, {"value", Tensor::Vector<float>({1})}});
  s.Run("sum", "Sum2", {{fed, 0}, {k, 0}}, 30);
  const MemoryProfile profile = s.Profile();
  EXPECT_EQ(profile.devices[0].peak_bytes, 30);
  EXPECT_EQ(profile.devices[0].fed_bytes, 500);
}

TEST(MemoryModelTest, WhatAnotherTaskReadsIsThereTwice) {
  Step s;
  Node* const a = s.Run("a", "Input", {}, 1000, kPs);
  Node* const b = s.Run("b", "Input", {}, 30, kPs);
  s.Run("c", "Sum2", {{a, 0}, {a, 0}}, 4, kWorker);
  s.Run("d", "Heavy", {{b, 0}}, 5, kPs);
  const MemoryProfile profile = s.Profile();
  EXPECT_EQ(s.On(profile, kPs).during, (std::vector<double>{1000, 1030, 1030, 35}))
      << "a is there until c has received it";
  EXPECT_EQ(s.On(profile, kWorker).during, (std::vector<double>{1000, 1000, 1004, 0}));
  EXPECT_EQ(s.On(profile, kWorker).peak_own_bytes, 4);
}

// A Merge forwards any one input, so the largest one bounds its output.
TEST(MemoryModelTest, AMergeKeepsItsLargestInput) {
  for (const bool swapped : {false, true}) {
    Step s;
    Node* const small = s.Run("small", "Input", {}, 100);
    Node* const large = s.Run("large", "Input", {}, 4000);
    const std::vector<Endpoint> inputs = swapped ? std::vector<Endpoint>{{large, 0}, {small, 0}}
                                                 : std::vector<Endpoint>{{small, 0}, {large, 0}};
    Node* const merge = s.Run("merge", "Merge", inputs, 100);
    s.Run("middle", "Input", {}, 7);
    s.Run("reader", "Heavy", {{merge, 0}}, 1);
    const MemoryProfile profile = s.Profile();
    EXPECT_EQ(profile.devices[0].during[3], 4007);
    EXPECT_EQ(profile.devices[0].during[4], 4001);
    EXPECT_EQ(profile.buffers[0].end, 2);
  }
}

// If the Merge forwards the small one, the large one is there as well, for its other reader.
TEST(MemoryModelTest, AMergeOfAnInputThatIsReadElsewhereCountsAsACopy) {
  Step s;
  Node* const small = s.Run("small", "Input", {}, 100);
  Node* const large = s.Run("large", "Input", {}, 4000);
  Node* const view = s.Run("view", "Identity", {{large, 0}}, 4000);
  Node* const merge = s.Run("merge", "Merge", {{small, 0}, {view, 0}}, 100);
  s.Run("middle", "Input", {}, 7);
  s.Run("late", "Heavy", {{large, 0}}, 2);
  s.Run("reader", "Heavy", {{merge, 0}}, 1);
  const MemoryProfile profile = s.Profile();
  EXPECT_EQ(profile.devices[0].during[4], 8007);
  EXPECT_EQ(profile.devices[0].during[6], 4001);
}

// If the Merge forwards the variable's value, the update copies it; else the other input is kept.
TEST(MemoryModelTest, AMergeOfAVariableCountsAsACopy) {
  Step s;
  const Attrs shape = {{"dtype", DType::kFloat}, {"shape", PartialShape({50})}};
  Node* const variable = s.Run("v", "Var", {}, 0, kWorker, shape);
  Node* const view = s.Run("view", "Identity", {{variable, 0}}, 200);
  Node* const other = s.Run("other", "Input", {}, 20);
  Node* const merge = s.Run("merge", "Merge", {{view, 0}, {other, 0}}, 200);
  Node* const by = s.Run("by", "Input", {}, 1);
  s.Run("update", "Update", {{variable, 0}, {by, 0}}, 0);
  s.Run("reader", "Heavy", {{merge, 0}}, 3);
  const MemoryProfile profile = s.Profile();
  EXPECT_EQ(profile.devices[0].during.back(), 203);
}

TEST(MemoryModelTest, AnUpdateCopiesAValueThatIsStillToBeRead) {
  for (const bool read_late : {false, true}) {
    Step s;
    const Attrs shape = {{"dtype", DType::kFloat}, {"shape", PartialShape({50})}};
    Node* const variable = s.Run("v", "Var", {}, 0, kWorker, shape);
    Node* const view = s.Run("view", "Identity", {{variable, 0}}, 200);
    Node* const by = s.Run("by", "Input", {}, 10);
    const auto read = [&] { s.Run("reader", "Heavy", {{view, 0}}, 3); };
    if (!read_late) read();
    s.Run("update", "Update", {{variable, 0}, {by, 0}}, 0);
    if (read_late) read();
    const MemoryProfile profile = s.Profile();
    EXPECT_EQ(profile.devices[0].state_bytes, 200);
    EXPECT_EQ(profile.devices[0].peak_bytes, read_late ? 210 : 13);
    EXPECT_EQ(profile.devices[0].during.back(), read_late ? 203 : 10);
  }
}

}  // namespace
}  // namespace penstock
