// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/cost_report.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr char kCpu[] = "/job:a/replica:0/task:0/device:CPU:0";

class CostFileTest : public testing::Test {
 protected:
  std::string ErrorOf(const std::string& text) {
    CHECK_OK(Env::Real().WriteFileAtomically(path_, text));
    return std::string(ReadCostFile(Env::Real(), path_).status().message());
  }

  const std::string path_ = testing::TempDir() + "/costs.json";
};

TEST_F(CostFileTest, ComesBackAsItWas) {
  wire::CostFile costs;
  wire::MeasuredNode* const node = costs.add_node();
  node->set_node("x");
  node->add_time()->set_device(kCpu);
  node->mutable_time(0)->set_nanos(1500.5);
  node->add_output_bytes(-1);
  node->add_output_bytes(40);
  ASSERT_EQ(WriteCostFile(Env::Real(), path_, costs), OkStatus());
  const auto read = ReadCostFile(Env::Real(), path_);
  ASSERT_TRUE(read.ok()) << read.status();
  const auto records = read->table.Records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].node, "x");
  ASSERT_EQ(records[0].times.size(), 1u);
  EXPECT_EQ(records[0].times[0].first, *DeviceName::Parse(kCpu));
  EXPECT_EQ(records[0].times[0].second, 1500.5);
  EXPECT_EQ(records[0].output_bytes, (std::vector<double>{-1, 40}));
}

TEST_F(CostFileTest, DevicesHaveTheRatesOfTheirMachine) {
  constexpr char kOther[] = "/job:b/replica:0/task:3/device:CPU:0";
  constexpr char kGpu[] = "/job:b/replica:0/task:3/device:GPU:0";
  wire::CostFile costs;
  costs.add_node()->set_node("x");
  for (const auto& [name, flops] : {std::pair(kOther, 3.0), std::pair(kCpu, 7.0)}) {
    wire::DeviceCost* const device = costs.add_device();
    device->set_device(name);
    device->set_flops_per_ns(flops);
    device->set_bytes_per_ns(2);
    device->set_launch_ns(500);
    device->set_origin("measured on a machine");
  }
  ASSERT_EQ(WriteCostFile(Env::Real(), path_, costs), OkStatus());
  const auto text = Env::Real().ReadFile(path_);
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("\"penstock_version\": \"0."));
  EXPECT_THAT(*text, HasSubstr("measured on a machine"));
  const auto read = ReadCostFile(Env::Real(), path_);
  ASSERT_TRUE(read.ok()) << read.status();
  std::vector<DeviceInfo> devices;
  for (const char* name : {kCpu, "/job:c/replica:0/task:0/device:CPU:0", kGpu}) {
    devices.push_back({.name = *DeviceName::Parse(name), .rates = DefaultRates("GPU")});
  }
  UseRates(*read, &devices);
  EXPECT_EQ(devices[0].rates.flops_per_ns, 7) << "of the same name";
  EXPECT_EQ(devices[1].rates.flops_per_ns, 3) << "the first of the same type";
  EXPECT_EQ(devices[2].rates.flops_per_ns, DefaultRates("GPU").flops_per_ns);
  costs.mutable_device(1)->set_launch_ns(-1);
  ASSERT_EQ(WriteCostFile(Env::Real(), path_, costs), OkStatus());
  EXPECT_THAT(std::string(ReadCostFile(Env::Real(), path_).status().message()),
              HasSubstr(StrCat("device '", kCpu, "': launch_ns: -1 is not between")));
}

TEST_F(CostFileTest, NothingMeasuredIsNoFile) {
  const Status status = WriteCostFile(Env::Real(), path_ + ".none", {});
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
}

TEST_F(CostFileTest, OtherFilesAreRefused) {
  EXPECT_THAT(ErrorOf("nodes: 3"), HasSubstr("costs.json is not a file of costs"));
  EXPECT_THAT(ErrorOf("{\"frequency\": 3}"), HasSubstr("frequency"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("of version 0, expected version 1"));
  EXPECT_THAT(ErrorOf("{\"penstock_costs\": 2}"), HasSubstr("of version 2, expected version 1"));
  EXPECT_THAT(ErrorOf("{\"penstock_costs\": 2, \"penstock_version\": \"9.1\"}"),
              HasSubstr("of version 2 (written by Penstock 9.1), expected version 1"));
  const auto with_time = [&](const std::string& device, const std::string& nanos) {
    return ErrorOf(
        StrCat("{\"penstock_costs\": 1, \"node\": [{\"node\": \"x\", \"time\": [{\"device\": \"",
               device, "\", \"nanos\": ", nanos, "}]}]}"));
  };
  EXPECT_EQ(with_time(kCpu, "7"), "");
  EXPECT_THAT(with_time("/job:a", "7"), HasSubstr("node 'x': '/job:a' is not a full device name"));
  EXPECT_THAT(with_time(kCpu, "-7"), HasSubstr("node 'x': -7 is no time"));
  EXPECT_THAT(with_time(kCpu, "\"NaN\""), HasSubstr("is no time"));
}

}  // namespace
}  // namespace penstock
