// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/feasible.h"

#include "core/compiler/testing/test_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

// A worker with a CPU and a GPU, and a ps. Only Heavy has a kernel for the GPU.
class FeasibleDevicesTest : public testing::Test {
 protected:
  StatusOr<std::vector<int>> Of(const Node* node, bool soft = false, bool any_task = false) {
    ASSIGN_OR_RETURN(const ColocationGroups groups, ColocationGroups::Of(p_.graph, soft));
    ASSIGN_OR_RETURN(
        const auto devices,
        FeasibleDevices::Of(
            p_.graph, groups, devices_,
            {.soft = soft, .any_task = any_task, .client_device = *DeviceName::Parse(kWorker)}));
    return devices[groups.Find(node->id())];
  }
  std::string ErrorOf(const Node* node) { return std::string(Of(node).status().message()); }
  static NodeOptions Beside(const std::string& node, const std::string& device = "") {
    return {.device = device, .attrs = {{"_class", std::vector<std::string>{"loc:@" + node}}}};
  }

  TestProgram p_;
  std::vector<DeviceInfo> devices_ = {
      {.name = *DeviceName::Parse("/job:worker/replica:0/task:0/device:GPU:0")},
      {.name = *DeviceName::Parse(kWorker)},
      {.name = *DeviceName::Parse(kPs)}};
};

TEST_F(FeasibleDevicesTest, KernelsAndTheClientsTask) {
  Node* const x = p_.Add("x", "Input");
  Node* const heavy = p_.Add("heavy", "Heavy", {{x, 0}});
  Node* const far = p_.Add("far", "Heavy", {{x, 0}}, {.device = "/job:ps"});
  EXPECT_EQ(*Of(x), (std::vector<int>{1}));
  EXPECT_EQ(*Of(heavy), (std::vector<int>{0, 1}));
  EXPECT_EQ(*Of(far), (std::vector<int>{2}));
  EXPECT_EQ(*Of(x, false, /*any_task=*/true), (std::vector<int>{1, 2}));
}

TEST_F(FeasibleDevicesTest, AGroupRunsWhereAllItsMembersCan) {
  Node* const x = p_.Add("x", "Input");
  Node* const heavy = p_.Add("heavy", "Heavy", {{x, 0}}, Beside("x"));
  EXPECT_EQ(*Of(heavy), (std::vector<int>{1}));
}

TEST_F(FeasibleDevicesTest, SoftPlacementAsksEveryMember) {
  Node* const x = p_.Add("x", "Input");
  Node* const heavy = p_.Add("heavy", "Heavy", {{x, 0}}, {.device = "/device:GPU:0"});
  p_.Add("other", "Input", {}, Beside("heavy"));
  EXPECT_EQ(*Of(heavy, /*soft=*/true), (std::vector<int>{1})) << "the CPU has kernels for both";
  EXPECT_EQ(ErrorOf(heavy),
            "Cannot place nodes 'heavy', 'other', which must be on one device: 'heavy' (op Heavy) "
            "asks for '/device:GPU:0'; 'other' (op Input) has kernels for CPU only");
}

// Most of the group's nodes could run on the CPU or on the GPU. One needs the CPU and one the GPU.
TEST_F(FeasibleDevicesTest, TheSmallestSetInConflictIsNamed) {
  Node* const first = p_.Add("first", "Heavy", {{p_.Add("x", "Input"), 0}});
  p_.Add("second", "Heavy", {{first, 0}}, Beside("first", "/job:worker"));
  p_.Add("gpu", "OnGpu", {{first, 0}}, Beside("second"));
  p_.Add("third", "Heavy", {{first, 0}}, Beside("gpu"));
  p_.Add("input", "Input", {}, Beside("third"));
  EXPECT_EQ(ErrorOf(first),
            "Cannot place nodes 'gpu', 'input', which must be on one device: 'gpu' (op OnGpu) has "
            "kernels for GPU only; 'input' (op Input) has kernels for CPU only; each of these must "
            "be where the next one is: 'gpu', 'third', 'input'");
}

TEST_F(FeasibleDevicesTest, OneNodeMayBeInConflictWithItself) {
  Node* const x = p_.Add("x", "Input", {}, {.device = "/device:GPU:0"});
  p_.Add("beside", "Heavy", {{x, 0}}, Beside("x"));
  EXPECT_THAT(ErrorOf(x), HasSubstr("Cannot place node 'x' on '/job:worker/replica:0/task:0/"
                                    "device:GPU:0' (requested: '/device:GPU:0')"));
}

TEST_F(FeasibleDevicesTest, SoftPlacementStaysInTheTask) {
  Node* const lost = p_.Add("lost", "Input", {}, {.device = "/job:ps/task:0/device:GPU:7"});
  EXPECT_EQ(*Of(lost, /*soft=*/true), (std::vector<int>{2}));
  EXPECT_THAT(ErrorOf(lost),
              HasSubstr("assigned to /job:ps/task:0/device:GPU:7 but available devices are [ "));
  EXPECT_THAT(ErrorOf(lost), HasSubstr("allow_soft_placement"));
}

}  // namespace
}  // namespace penstock
