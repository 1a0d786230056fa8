// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/pass/cost_table.h"

#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

DeviceInfo Device(const char* name) {
  DeviceInfo device = {.name = *DeviceName::Parse(name)};
  device.rates = DefaultRates(*device.name.type);
  return device;
}

class CostTableTest : public testing::Test {
 protected:
  // A product of [2, 100] and [100, 3].
  CostTableTest() {
    Node* a = p_.Add("a", "Input");
    Node* b = p_.Add("b", "Input");
    product_ = p_.Add("product", "Product", {{a, 0}, {b, 0}});
    shapes_ = {{PartialShape({2, 100})}, {PartialShape({100, 3})}, {PartialShape({2, 3})}};
  }

  TestProgram p_;
  Node* product_;
  ShapeMap shapes_;
  CostTable costs_;
  const DeviceInfo cpu_ = Device("/job:a/replica:0/task:0/device:CPU:0");
  const DeviceInfo other_cpu_ = Device("/job:a/replica:0/task:1/device:CPU:0");
  const DeviceInfo gpu_ = Device("/job:a/replica:0/task:0/device:GPU:0");
};

TEST_F(CostTableTest, EstimatesComeFromWorkAndRates) {
  costs_.Estimate(p_.graph, shapes_);
  EXPECT_EQ(costs_.OutputBytes(*product_, 0), 2 * 3 * 4);
  // Reading and writing memory takes longer than the 2 * 2 * 3 * 100 operations.
  EXPECT_EQ(costs_.NodeNanos(*product_, cpu_), 200 + (200 + 300 + 6) * 4 / 10.0);
  EXPECT_EQ(costs_.NodeNanos(*product_, gpu_), 5000 + (200 + 300 + 6) * 4 / 1000.0);
  DeviceInfo slow = cpu_;
  slow.rates = {.flops_per_ns = 1, .bytes_per_ns = 1e9, .launch_ns = 0};
  EXPECT_EQ(costs_.NodeNanos(*product_, slow), 2 * 2 * 3 * 100);
}

// A view, a snapshot of a variable and control flow copy nothing.
TEST_F(CostTableTest, PassingOnTakesNoWork) {
  Node* const view = p_.Add("view", "Identity", {{product_, 0}});
  Node* const flow = p_.Add("flow", "Switch", {{product_, 0}, {product_, 0}});
  costs_.Estimate(p_.graph, {});
  EXPECT_EQ(costs_.NodeNanos(*view, cpu_), cpu_.rates.launch_ns);
  EXPECT_EQ(costs_.NodeNanos(*flow, cpu_), cpu_.rates.launch_ns);
  EXPECT_EQ(costs_.OutputBytes(*view, 0), 64 * 64 * 4);
}

TEST_F(CostTableTest, UnknownShapesAreGuessed) {
  costs_.Estimate(p_.graph, {});
  EXPECT_EQ(costs_.OutputBytes(*product_, 0), 64 * 64 * 4);
  DeviceInfo slow = cpu_;
  slow.rates = {.flops_per_ns = 1, .bytes_per_ns = 1e9, .launch_ns = 0};
  EXPECT_EQ(costs_.NodeNanos(*product_, slow), 2.0 * 64 * 64 * 64);
}

TEST_F(CostTableTest, WhatWasMeasuredComesFirst) {
  costs_.RecordNode("product", cpu_.name, 7'000'000);
  costs_.RecordOutput("product", 0, 48);
  costs_.Estimate(p_.graph, shapes_);
  EXPECT_EQ(costs_.NodeNanos(*product_, cpu_), 7'000'000) << "however long it is";
  EXPECT_EQ(costs_.NodeNanos(*product_, other_cpu_), 7'000'000) << "of the same type";
  EXPECT_LT(costs_.NodeNanos(*product_, gpu_), 6000) << "still an estimate";
  EXPECT_EQ(costs_.OutputBytes(*product_, 0), 48);
}

TEST_F(CostTableTest, TimesGoDownQuicklyAndUpSlowly) {
  costs_.RecordNode("product", cpu_.name, 1000);
  costs_.RecordNode("product", cpu_.name, 500);
  EXPECT_EQ(costs_.NodeNanos(*product_, cpu_), 750);
  costs_.RecordNode("product", cpu_.name, 1150);
  EXPECT_EQ(costs_.NodeNanos(*product_, cpu_), 850);
}

TEST_F(CostTableTest, RecordsFillAnotherTable) {
  costs_.RecordNode("product", cpu_.name, 1000);
  costs_.RecordNode("product", gpu_.name, 10);
  costs_.RecordNode("a", cpu_.name, 5);
  costs_.RecordOutput("product", 1, 48);
  const auto records = costs_.Records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].node, "a");
  EXPECT_EQ(records[1].output_bytes, (std::vector<double>{-1, 48}));
  CostTable other;
  for (const CostTable::Record& record : records) other.Add(record);
  EXPECT_EQ(other.NodeNanos(*product_, cpu_), 1000);
  EXPECT_EQ(other.NodeNanos(*product_, gpu_), 10);
  EXPECT_EQ(other.OutputBytes(*product_, 1), 48);
  other.Estimate(p_.graph, shapes_);
  EXPECT_EQ(other.Flops(*product_), 2 * 2 * 3 * 100);
  EXPECT_EQ(other.OutputBytes(*product_, 0), 2 * 3 * 4) << "not measured";
}

TEST_F(CostTableTest, OneTimeThatIsFarOffCountsLittle) {
  costs_.RecordNode("product", cpu_.name, 1000);
  costs_.RecordNode("product", cpu_.name, 1e9);
  EXPECT_EQ(costs_.NodeNanos(*product_, cpu_), 1750);
}

TEST_F(CostTableTest, EstimatesLearnFromWhatWasMeasured) {
  Node* const other = p_.Add("other", "Product", {product_->input(0), product_->input(1)});
  shapes_.push_back({PartialShape({2, 3})});
  costs_.Estimate(p_.graph, shapes_);
  const double estimate = costs_.NodeNanos(*other, cpu_);
  costs_.RecordNode("product", cpu_.name, 10 * estimate);
  costs_.RecordNode("product", other_cpu_.name, 30 * estimate);
  costs_.Estimate(p_.graph, shapes_, {cpu_, other_cpu_, gpu_});
  EXPECT_DOUBLE_EQ(costs_.NodeNanos(*other, cpu_), 10 * estimate);
  EXPECT_DOUBLE_EQ(costs_.NodeNanos(*other, other_cpu_), 30 * estimate);
  const DeviceInfo third = Device("/job:a/replica:0/task:2/device:CPU:0");
  EXPECT_DOUBLE_EQ(costs_.NodeNanos(*other, third), 20 * estimate) << "like the average CPU";
  EXPECT_LT(costs_.NodeNanos(*other, gpu_), 6000) << "GPUs were not measured";
}

// On the throttled device, half of the steps are stopped in the middle of some node.
TEST_F(CostTableTest, AThrottledDeviceIsSlow) {
  Node* const other = p_.Add("other", "Product", {product_->input(0), product_->input(1)});
  Node* const never = p_.Add("never", "Product", {product_->input(0), product_->input(1)});
  shapes_.insert(shapes_.end(), 2, {PartialShape({2, 3})});
  const auto run = [&](const DeviceInfo& device, double product_ns, double other_ns) {
    costs_.RecordStep(device.name, {{"product", product_ns}, {"other", other_ns}});
  };
  for (int step = 0; step < 12; ++step) {
    run(cpu_, 1000, 1000);
    run(other_cpu_, 1000, 1000);
  }
  costs_.Estimate(p_.graph, shapes_, {cpu_, other_cpu_});
  EXPECT_EQ(costs_.Slowness(cpu_.name), 1);
  EXPECT_EQ(costs_.NodeNanos(*product_, cpu_), 1000);
  const double before = costs_.NodeNanos(*never, cpu_);
  for (int step = 0; step < 12; ++step) {
    const bool stopped = step % 2 == 0, early = step % 4 == 0;
    run(cpu_, stopped && early ? 5000 : 1000, stopped && !early ? 5000 : 1000);
    run(other_cpu_, 1000, 1000);
  }
  costs_.Estimate(p_.graph, shapes_, {cpu_, other_cpu_});
  EXPECT_GT(costs_.Slowness(cpu_.name), 1.3);
  EXPECT_EQ(costs_.Slowness(other_cpu_.name), 1);
  // The two nodes together take the average time of the steps without the slowest one: 3818.
  EXPECT_NEAR(costs_.NodeNanos(*product_, cpu_) + costs_.NodeNanos(*other, cpu_), 3818, 150);
  EXPECT_EQ(costs_.NodeNanos(*product_, other_cpu_), 1000);
  EXPECT_GT(costs_.NodeNanos(*never, cpu_), 1.3 * before) << "estimates follow";
}

// All nodes take longer in every step. When the table has learnt the new times, the device does not
// count as slow any more.
TEST_F(CostTableTest, NodesThatHaveGrownAreNotCountedTwice) {
  costs_.Estimate(p_.graph, shapes_);
  for (int step = 0; step < 12; ++step) costs_.RecordStep(cpu_.name, {{"product", 1000}});
  for (int step = 0; step < 12; ++step) {
    costs_.RecordStep(cpu_.name, {{"product", 3000}});
    EXPECT_LE(costs_.NodeNanos(*product_, cpu_), 3001);
  }
  EXPECT_NEAR(costs_.NodeNanos(*product_, cpu_), 3000, 150);
}

TEST_F(CostTableTest, TheSlowerEndOfALinkCounts) {
  DeviceInfo far = other_cpu_;
  EXPECT_EQ(costs_.LinkBetween(cpu_, far).latency_ns, 100'000);
  far.link_to_tasks.latency_ns = 1'000'000;
  EXPECT_EQ(costs_.LinkBetween(cpu_, far).latency_ns, 1'000'000);
  EXPECT_EQ(costs_.LinkBetween(far, cpu_).latency_ns, 1'000'000);
}

TEST_F(CostTableTest, LinksFollowTheQuickestTransfers) {
  costs_.Estimate(p_.graph, shapes_);
  constexpr double kMega = 1 << 20;
  costs_.RecordTransfer(cpu_.name, other_cpu_.name, 100, 20'000);
  costs_.RecordTransfer(cpu_.name, other_cpu_.name, kMega, 20'000 + kMega / 4);
  LinkRates link = costs_.LinkBetween(cpu_, other_cpu_);
  EXPECT_EQ(link.latency_ns, 20'000);
  EXPECT_DOUBLE_EQ(link.bytes_per_ns, 4);
  // A transfer that was slow because it waited for others changes the result little. Transfers of
  // medium size are ignored.
  costs_.RecordTransfer(cpu_.name, other_cpu_.name, kMega, 40 * kMega);
  costs_.RecordTransfer(cpu_.name, other_cpu_.name, 30'000, 1);
  costs_.RecordTransfer(cpu_.name, other_cpu_.name, 100, -5);
  link = costs_.LinkBetween(cpu_, other_cpu_);
  EXPECT_GT(link.bytes_per_ns, 3.7);
  EXPECT_EQ(link.latency_ns, 20'000);
  ASSERT_EQ(costs_.links().size(), 1u);
  EXPECT_EQ(costs_.links()[0].transfers, 3);
  // The other direction was not measured.
  EXPECT_EQ(costs_.LinkBetween(other_cpu_, cpu_).latency_ns, 100'000);
}

}  // namespace
}  // namespace penstock
