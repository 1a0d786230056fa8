// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/pass/learned_rates.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

DeviceName NamedDevice(const char* name) { return *DeviceName::Parse(name); }

class LearnedRatesTest : public testing::Test {
 protected:
  LearnedRates rates_;
  const DeviceName a_ = NamedDevice("/job:w/replica:0/task:0/device:CPU:0");
  const DeviceName b_ = NamedDevice("/job:w/replica:0/task:1/device:CPU:0");
  const DeviceName gpu_ = NamedDevice("/job:w/replica:0/task:0/device:GPU:0");
};

TEST_F(LearnedRatesTest, NothingMeasuredNothingChanged) {
  rates_.Finish();
  EXPECT_EQ(rates_.Factor("MatMul", a_), 1);
  EXPECT_EQ(rates_.Slowness(a_, b_), 1);
}

TEST_F(LearnedRatesTest, AnOpHasAFactorOfItsOwn) {
  rates_.Add("MatMul", a_, 300, 100);
  rates_.Add("Add", a_, 50, 100);
  rates_.Finish();
  EXPECT_EQ(rates_.Factor("MatMul", a_), 3);
  EXPECT_EQ(rates_.Factor("MatMul", b_), 3) << "of the same type";
  EXPECT_EQ(rates_.Factor("Add", a_), 0.5);
  EXPECT_EQ(rates_.Factor("Mul", a_), 1.75) << "as ops of that type do";
  EXPECT_EQ(rates_.Factor("MatMul", gpu_), 1) << "nothing is known of GPUs";
}

TEST_F(LearnedRatesTest, ASlowDeviceIsSlowAtEverything) {
  rates_.Add("MatMul", a_, 100, 100);
  rates_.Add("MatMul", b_, 200, 100);
  rates_.Finish();
  EXPECT_DOUBLE_EQ(rates_.Slowness(a_, b_), 2);
  EXPECT_DOUBLE_EQ(rates_.Slowness(b_, a_), 0.5);
  EXPECT_DOUBLE_EQ(rates_.Factor("MatMul", a_), 1);
  EXPECT_DOUBLE_EQ(rates_.Factor("MatMul", b_), 2);
}

// The devices ran different ops, so a larger error of the estimates on one device does not mean
// that the device is slow.
TEST_F(LearnedRatesTest, DevicesAreComparedByTheSameOps) {
  rates_.Add("MatMul", a_, 100, 100);
  rates_.Add("AsString", b_, 5000, 100);
  rates_.Finish();
  EXPECT_EQ(rates_.Slowness(a_, b_), 1);
}

}  // namespace
}  // namespace penstock
