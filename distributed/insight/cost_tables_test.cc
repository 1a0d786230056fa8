// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/cost_tables.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

wire::StepCosts Step() {
  wire::StepCosts step;
  step.add_fetch("loss:0");
  step.set_executions(12);
  step.set_median_ns(200'000);
  step.set_predicted_ns(150'000);
  for (const auto& [name, nanos, measured] :
       {std::tuple("small", 25'000, false), std::tuple("large", 75'000, true)}) {
    wire::NodeCost* const node = step.add_node();
    node->set_node(name);
    node->set_op("MatMul");
    node->set_device("/job:a/replica:0/task:0/device:CPU:0");
    node->set_nanos(nanos);
    node->set_bytes(4'000);
    node->set_flops(1e6);
    node->set_measured(measured);
  }
  return step;
}

TEST(CostTablesTest, TheMostExpensiveNodesComeFirst) {
  const std::string text = CostText(Step(), 1);
  EXPECT_THAT(text, HasSubstr("step of loss:0"));
  EXPECT_THAT(text, HasSubstr("2 nodes, 1 of them measured, 100.0 us"));
  EXPECT_THAT(text, HasSubstr("75.0%"));
  EXPECT_THAT(text, Not(HasSubstr("small")));
  EXPECT_THAT(text, HasSubstr("and 1 more"));
}

TEST(CostTablesTest, APredictionIsComparedAfterTenExecutions) {
  wire::StepCosts step = Step();
  EXPECT_EQ(DifferenceText(step), "25 % less than measured");
  step.set_predicted_ns(260'000);
  EXPECT_EQ(DifferenceText(step), "30 % more than measured");
  step.set_executions(9);
  EXPECT_EQ(DifferenceText(step), "");
}

TEST(CostTablesTest, TheMemoryOfEachDevice) {
  wire::StepCosts step = Step();
  wire::DeviceMemory* const memory = step.add_memory();
  memory->set_device("/job:a/replica:0/task:0/device:CPU:0");
  memory->set_peak_bytes(3.5e6);
  memory->set_state_bytes(2e6);
  memory->set_peak_node("large");
  wire::DeviceMemory::Tensor* const tensor = memory->add_largest();
  tensor->set_name("small:0");
  tensor->set_bytes(3e6);
  const std::string text = CostText(step, 1);
  EXPECT_THAT(text, HasSubstr("3.5 MB of tensors at the peak, beside 2.0 MB of variables\n"
                              "    while large runs, the largest are\n"
                              "        3.0 MB  small:0\n"));
  memory->set_fed_bytes(1e3);
  EXPECT_THAT(CostText(step, 1), HasSubstr("2.0 MB of variables and 1.0 KB fed\n"));
}

TEST(CostTablesTest, ANodeIsALineOfCsv) {
  wire::StepCosts step = Step();
  step.mutable_node(0)->set_node("a,b");
  EXPECT_EQ(CostCsv(step),
            "node,op,device,us,share,bytes,flops,measured\n"
            "large,MatMul,/job:a/replica:0/task:0/device:CPU:0,75.000,0.7500,4000,1000000,1\n"
            "\"a,b\",MatMul,/job:a/replica:0/task:0/device:CPU:0,25.000,0.2500,4000,1000000,0\n");
}

TEST(CostTablesTest, RatesSayHowTheyWereObtained) {
  wire::SessionCosts session;
  for (const char* origin : {"measured when the task started", ""}) {
    wire::DeviceCost* const device = session.add_device();
    device->set_device("/job:a/replica:0/task:0/device:CPU:0");
    device->set_flops_per_ns(45);
    device->set_bytes_per_ns(9.5);
    device->set_launch_ns(310);
    device->set_lanes(2);
    device->set_origin(origin);
    device->set_slowness(*origin == '\0' ? 1.93 : 1);
  }
  wire::LinkCost* const link = session.add_link();
  link->set_from("/job:a/replica:0/task:0");
  link->set_to("/job:b/replica:0/task:1");
  link->set_latency_ns(35'000);
  link->set_bytes_per_ns(-1);
  link->set_transfers(7);
  EXPECT_EQ(RatesText(session),
            "  /job:a/replica:0/task:0/device:CPU:0: 45 GFLOP/s, 9.5 GB/s, 0.31 us per kernel, "
            "2 at once (measured when the task started)\n"
            "  /job:a/replica:0/task:0/device:CPU:0: 45 GFLOP/s, 9.5 GB/s, 0.31 us per kernel, "
            "2 at once (assumed); its nodes lately took 1.9 times as long\n"
            "  /job:a/replica:0/task:0 to /job:b/replica:0/task:1: 35 us, rate assumed (measured "
            "by 7 transfers)\n");
}

TEST(CostTablesTest, AStepThatCannotBePredictedSaysWhy) {
  wire::StepCosts step = Step();
  step.mutable_error()->set_message("a task is lost");
  EXPECT_THAT(CostText(step, 9), HasSubstr("not predicted: a task is lost"));
}

}  // namespace
}  // namespace penstock
