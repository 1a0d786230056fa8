// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/cost_report.h"

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
  wire::SessionCosts costs;
  wire::MeasuredNode* const node = costs.add_measured();
  node->set_node("x");
  node->add_time()->set_device(kCpu);
  node->mutable_time(0)->set_nanos(1500.5);
  node->add_output_bytes(-1);
  node->add_output_bytes(40);
  ASSERT_EQ(WriteCostFile(Env::Real(), path_, costs.measured()), OkStatus());
  const auto table = ReadCostFile(Env::Real(), path_);
  ASSERT_TRUE(table.ok()) << table.status();
  const auto records = table->Records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].node, "x");
  ASSERT_EQ(records[0].times.size(), 1u);
  EXPECT_EQ(records[0].times[0].first, *DeviceName::Parse(kCpu));
  EXPECT_EQ(records[0].times[0].second, 1500.5);
  EXPECT_EQ(records[0].output_bytes, (std::vector<double>{-1, 40}));
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
