// SPDX-License-Identifier: Apache-2.0
#include "client/device_setter.h"

#include <optional>

#include "client/optimizers.h"
#include "client/program.h"
#include "client/replicate.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

std::string DeviceOf(Program& program, Output output) {
  return program.NodeOf(output)->requested_device();
}

TEST(ReplicaDeviceSetterTest, VariablesTakeTurns) {
  Program program;
  const auto scope = program.DeviceFunctionScope(
      ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = "/job:worker/task:3"}));
  const char* const want[] = {"/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"};
  for (const char* device : want) {
    const Variable v(program, "v", {10, 10}, Zeros());
    EXPECT_EQ(v.device(), device);
    // The initial value is computed on the variable's device.
    EXPECT_EQ(program.NodeOf(v.initializer())->requested_device(), device);
    EXPECT_EQ(DeviceOf(program, v.Read() * 2.0), "/job:worker/task:3");
  }
}

TEST(ReplicaDeviceSetterTest, LocalVariablesStayWithTheWorker) {
  Program program;
  const auto scope = program.DeviceFunctionScope(
      ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = "/job:worker/task:3"}));
  const Variable v(program, "v", {}, Zeros(), {.local = true});
  EXPECT_EQ(v.device(), "/job:worker/task:3");
  EXPECT_EQ(DeviceOf(program, v.AssignAdd(v)), "/job:worker/task:3");
}

TEST(ReplicaDeviceSetterTest, BalancesBytes) {
  Program program;
  const auto scope =
      program.DeviceFunctionScope(ReplicaDeviceSetter({.ps_tasks = 3, .balance = Balance::kBytes}));
  int64_t bytes[3] = {};
  // Sizes as in a convnet: alternately large and small.
  const std::vector<int64_t> sizes = {900000, 100, 400000, 200, 350000, 90, 200000, 10};
  for (const int64_t size : sizes) {
    const Variable v(program, "v", {size}, Zeros());
    const int task = v.device().back() - '0';
    ASSERT_TRUE(task >= 0 && task < 3) << v.device();
    bytes[task] += size;
  }
  EXPECT_EQ(bytes[0], 900000);
  EXPECT_NEAR(bytes[1], 475000, 80000);
  EXPECT_NEAR(bytes[2], 475000, 80000);
}

// A table grows while it is trained, so its parts are spread evenly, even after small variables
// were placed.
TEST(ReplicaDeviceSetterTest, SpreadsTheTablesPartsByTheirLimits) {
  Program program;
  const auto scope =
      program.DeviceFunctionScope(ReplicaDeviceSetter({.ps_tasks = 2, .balance = Balance::kBytes}));
  const auto part = [&](Attrs attrs) {
    attrs["width"] = int64_t{8};
    attrs["slots"] = std::vector<float>{0};
    return DeviceOf(program, CallIn(program, "DynamicTable", {}, attrs));
  };
  EXPECT_EQ(Variable(program, "v", {1000}, Zeros()).device(), "/job:ps/task:0");
  EXPECT_EQ(part({}), "/job:ps/task:1");
  EXPECT_EQ(part({}), "/job:ps/task:0");
  EXPECT_EQ(part({{"max_rows", int64_t{100}}}), "/job:ps/task:1");         // 6400 bytes
  EXPECT_EQ(part({{"max_bytes", int64_t{1'000'000}}}), "/job:ps/task:0");  // 4000 against 6400
  EXPECT_EQ(part({}), "/job:ps/task:1");
}

TEST(ReplicaDeviceSetterTest, WhatTheProgramSaysComesFirst) {
  struct {
    const char* inner;
    const char* variable;
    const char* op;
  } const cases[] = {
      {"", "/job:ps/task:0", "/job:worker"},
      {"/device:GPU:1", "/job:ps/task:0/device:GPU:1", "/job:worker/device:GPU:1"},
      {"/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:1"},
      {"/job:chief/task:0", "/job:chief/task:0", "/job:chief/task:0"},
  };
  for (const auto& c : cases) {
    Program program;
    const auto scope = program.DeviceFunctionScope(ReplicaDeviceSetter({.ps_tasks = 2}));
    const auto inner = program.DeviceScope(c.inner);
    EXPECT_EQ(Variable(program, "v", {2}, Zeros()).device(), c.variable) << c.inner;
    EXPECT_EQ(DeviceOf(program, Constant(program, Tensor::Scalar(1.0f))), c.op) << c.inner;
  }
}

TEST(ReplicaDeviceSetterTest, OpsOnAVariableGoToTheVariable) {
  Program program;
  const auto scope = program.DeviceFunctionScope(ReplicaDeviceSetter({.ps_tasks = 2}));
  const Variable table(program, "table", {10, 2}, Zeros());
  const Output rows =
      Call("ResourceGather", {table.handle(), Constant(program, Tensor::Vector<int32_t>({1}))},
           {{"dtype", DType::kFloat}});
  EXPECT_EQ(DeviceOf(program, rows), "/job:ps/task:0");
}

TEST(ReplicaDeviceSetterTest, WithoutParameterServersAllIsTheWorkers) {
  Program program;
  const auto scope = program.DeviceFunctionScope(OnDevice("/job:worker/task:1"));
  EXPECT_EQ(Variable(program, "v", {2}, Zeros()).device(), "/job:worker/task:1");
}

TEST(ReplicaDeviceSetterTest, ABadNameIsTheProgramsError) {
  for (const ReplicaDevices& devices :
       {ReplicaDevices{.ps_tasks = 1, .ps_device = "nonsense"},
        ReplicaDevices{.ps_tasks = 1, .worker_device = "nonsense"}}) {
    Program program;
    const auto scope = program.DeviceFunctionScope(ReplicaDeviceSetter(devices));
    Variable(program, "v", {2}, Zeros());
    EXPECT_EQ(program.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(program.status().message().find("nonsense"), std::string::npos) << program.status();
  }
}

TEST(BuildTowersTest, TowersShareVariablesAndAverageBesideThem) {
  Program program;
  std::optional<Variable> w;
  {
    const auto scope = program.DeviceFunctionScope(ReplicaDeviceSetter({.ps_tasks = 1}));
    w.emplace(program, "w", Shape{3}, Zeros());
  }
  GradientDescent optimizer(0.1);
  Outputs squares;
  const Towers towers =
      BuildTowers(program, optimizer, {"/job:worker/task:0", "/job:worker/task:1"}, [&](int) {
        squares.push_back(Square(*w));
        return Sum(squares.back(), Constant(program, Tensor::Vector<int32_t>({0})));
      });
  ASSERT_TRUE(program.status().ok()) << program.status();
  EXPECT_EQ(DeviceOf(program, squares[0]), "/job:worker/task:0");
  EXPECT_EQ(DeviceOf(program, squares[1]), "/job:worker/task:1");
  ASSERT_EQ(towers.gradients.size(), 1u);
  EXPECT_EQ(DeviceOf(program, towers.gradients[0].gradient.values), "/job:ps/task:0");
}

}  // namespace
}  // namespace penstock::client
