// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/placed_problem.h"

#include <string>
#include <vector>

#include "core/compiler/testing/test_program.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

enum { kOfPs, kOfWorker };  // indices of devices in TestCluster

// "big" on the ps has an output of 1000 bytes. Only "reader" on the worker reads it, after "slow"
// on the ps.
class PlacedProblemTest : public testing::Test {
 protected:
  PlacedProblemTest() {
    Node* const x = Add("x", "Input", {}, kPs);
    Node* const big = Add("big", "Heavy", {{x, 0}}, kPs);
    Node* const slow = Add("slow", "Heavy", {{x, 0}}, kPs);
    Add("reader", "Sum2", {{big, 0}, {slow, 0}}, kWorker);
    costs_.RecordOutput("x", 0, 1);
    costs_.RecordOutput("big", 0, 1000);
    costs_.RecordOutput("slow", 0, 10);
    costs_.RecordOutput("reader", 0, 0);
    for (DeviceInfo& device : p_.devices) {
      device.link_to_tasks = {.bytes_per_ns = 10, .latency_ns = 100};
    }
  }

  Node* Add(const std::string& name, const char* op, std::vector<Endpoint> inputs,
            const char* device) {
    Node* const node = p_.Add(name, op, std::move(inputs), {.device = device});
    p_.graph.set_assigned_device(node, device);
    costs_.RecordNode(name, *DeviceName::Parse(device), name == "slow" ? 1e6 : 1000);
    return node;
  }
  PlacedProblem Describe() {
    auto placed = DescribePlaced(p_.graph, p_.devices, costs_, p_.options.client_device);
    EXPECT_TRUE(placed.ok()) << placed.status();
    return *std::move(placed);
  }
  static PredictedStep Predict(const PlacedProblem& placed) {
    return PredictStep(placed.problem, placed.device, UpwardRanks(placed.problem));
  }

  TestProgram p_;
  CostTable costs_;
};

TEST_F(PlacedProblemTest, NodesAreWhereTheyWerePlaced) {
  const PlacedProblem placed = Describe();
  ASSERT_EQ(placed.order.size(), 4u);
  for (size_t i = 0; i < placed.order.size(); ++i) {
    const bool on_worker = placed.order[i]->name() == "reader";
    EXPECT_EQ(placed.device[i], on_worker ? kOfWorker : kOfPs);
    EXPECT_EQ(placed.index[placed.order[i]->id()], static_cast<int>(i));
    EXPECT_EQ(placed.problem.output_bytes[placed.first_output[i]],
              costs_.OutputBytes(*placed.order[i], 0));
  }
  const PredictedStep step = Predict(placed);
  EXPECT_GT(step.end_ns, 1e6);
  EXPECT_EQ(step.transfers.size(), 2u);
}

// An output that only another task reads takes memory at both ends.
TEST_F(PlacedProblemTest, PeaksCountWhatIsSent) {
  const PlacedProblem placed = Describe();
  const std::vector<double> peaks = PeakBytes(placed, Predict(placed));
  ASSERT_EQ(peaks.size(), p_.devices.size());
  EXPECT_GE(peaks[kOfPs], 1000);
  EXPECT_LE(peaks[kOfPs], 1011);
  EXPECT_EQ(peaks[kOfWorker], 1010) << "both wait for the sum";
}

TEST_F(PlacedProblemTest, MeasuredLinksTakeThePlaceOfAssumedOnes) {
  EXPECT_TRUE(Describe().problem.links.empty());
  costs_.RecordTransfer(*DeviceName::Parse(kPs), *DeviceName::Parse(kWorker), 100, 7'000);
  const PlacedProblem placed = Describe();
  EXPECT_EQ(placed.problem.Link(kOfPs, kOfWorker).latency_ns, 7'000);
  EXPECT_EQ(placed.problem.Link(kOfPs, kOfWorker).bytes_per_ns, 10);
  EXPECT_EQ(placed.problem.Link(kOfWorker, kOfPs).latency_ns, 100);
}

}  // namespace
}  // namespace penstock
