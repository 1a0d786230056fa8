// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/auto_placement.h"

#include <string>
#include <vector>

#include "core/compiler/testing/test_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

// A graph with two expensive products, each of two variables, whose nodes name no devices.
class AutoPlacementTest : public testing::Test {
 protected:
  AutoPlacementTest() {
    for (DeviceInfo& device : p_.devices) {
      device.rates = {.flops_per_ns = 0.001, .bytes_per_ns = 1, .launch_ns = 100};
    }
    for (const std::string side : {"a", "b"}) {
      Node* const x = p_.Add(side + "_x", "Var");
      Node* const y = p_.Add(side + "_y", "Var");
      p_.Add(side + "_product", "Product", {{x, 0}, {y, 0}});
    }
  }
  std::shared_ptr<const DeviceByNode> Decide(int64_t version) {
    auto state = placement_.StateDevices(p_.graph, version, p_.devices, p_.options);
    EXPECT_TRUE(state.ok()) << state.status();
    return state.ok() ? *state : nullptr;
  }

  TestProgram p_;
  AutoPlacement placement_;
};

TEST_F(AutoPlacementTest, StateIsSpreadAsItsUseIs) {
  const auto state = Decide(1);
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state->size(), 4u) << "variables, and nothing else";
  EXPECT_EQ(state->at("a_x"), state->at("a_y"));
  EXPECT_EQ(state->at("b_x"), state->at("b_y"));
  EXPECT_NE(state->at("a_x"), state->at("b_x"));
}

TEST_F(AutoPlacementTest, DecisionsStay) {
  const auto before = Decide(1);
  EXPECT_EQ(Decide(1), before) << "not decided again";
  for (DeviceInfo& device :
       p_.devices) {  // by these costs, one task would now be fast enough for both variables
    device.rates.flops_per_ns = 1e9;
  }
  p_.Add("c_x", "Var");
  const auto after = Decide(2);
  ASSERT_EQ(after->size(), 5u);
  for (const auto& [node, device] : *before) EXPECT_EQ(after->at(node), device);
}

TEST_F(AutoPlacementTest, ErrorsSayThatTheWholeGraphIsPlaced) {
  p_.Add("lost", "Input", {}, {.device = "/job:nowhere"});
  const Status status = placement_.StateDevices(p_.graph, 1, p_.devices, p_.options).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("placement of the whole graph"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("operation lost:"));
}

// Simulates executions, one after the other, whose times the test chooses, and counts the measured
// ones.
struct SampledStep {
  void Run(int executions, int64_t nanos) {
    for (int i = 0; i < executions; ++i) {
      const StepSampling::Sample sample = sampling.Begin(times);
      times.Add(nanos);
      ++begun;
      if (sample == StepSampling::Sample::kNone) continue;
      measured.push_back(begun);
      if (sample == StepSampling::Sample::kMeasureAndPlace) placed.push_back(begun);
    }
  }

  StepSampling sampling;
  StepTimes times;
  int begun = 0;
  std::vector<int> measured, placed;
};

TEST(StepSamplingTest, MeasuresFewExecutions) {
  SampledStep step;
  step.Run(5000, 1'000'000);
  EXPECT_EQ(step.measured, (std::vector<int>{2, 3, 4, 16, 1024, 2048, 3072, 4096}));
  EXPECT_EQ(step.placed, (std::vector<int>{4, 16, 1024, 2048, 3072, 4096}));
}

TEST(StepSamplingTest, AStepThatHasBecomeSlowerIsMeasured) {
  SampledStep step;
  step.Run(200, 1'000'000);
  step.measured.clear();
  step.placed.clear();
  step.Run(100, 1'500'000);
  ASSERT_EQ(step.placed.size(), 1u);
  EXPECT_EQ(step.measured.size(), size_t{StepSampling::kBurst});
  EXPECT_EQ(step.measured.back(), step.placed.back()) << "placed by what the others have shown";
  EXPECT_LE(step.placed.back(), 200 + 2 * 32 + 12);
  // From here on the speed stays the same.
  step.Run(600, 1'500'000);
  EXPECT_EQ(step.placed.size(), 1u);
  step.placed.clear();
  step.Run(100, 1'000'000);
  EXPECT_EQ(step.placed.size(), 1u) << "quicker again";
}

TEST(StepSamplingTest, NoiseIsNotMeasured) {
  SampledStep step;
  for (int i = 0; i < 25; ++i) {
    step.Run(1, 100'000'000);  // a rare slow execution: MeanNanos leaves out the longest
    step.Run(29, 1'000'000);
    step.Run(10, 1'200'000);
  }
  EXPECT_EQ(step.measured, (std::vector<int>{2, 3, 4, 16}));
}

TEST(CheckPlacementTest, ErrorsListTheAllowedValues) {
  EXPECT_TRUE(CheckPlacement("auto").ok());
  EXPECT_TRUE(CheckPlacement("client").ok());
  EXPECT_THAT(std::string(CheckPlacement("best").message()), HasSubstr("'client' or 'auto'"));
}

}  // namespace
}  // namespace penstock
