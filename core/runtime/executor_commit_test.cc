// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#include "core/op/variable.h"
#include "core/runtime/testing/test_ops.h"

namespace penstock {
namespace {

// Cancels the step at many different moments: afterwards either all variables that the step assigns
// after the commit are assigned, or none.
TEST(ExecutorCommitTest, WhatFollowsIsDoneAsAWhole) {
  TestTask task;
  TestGraph g;
  const auto spin = [&](Node* x) { return g.AddSum("TestSpin", {x}, {{"micros", 300}}); };
  const auto assign = [&](const std::string& name, Node* value, Node* after) {
    g.Add("TestAssign", {g.Add("TestVariable", {}, {{"name", name}}), value}, {}, {after});
  };
  Node* const commit = g.Add("NoOp", {}, {{"_commit", true}}, {spin(g.Feed(0))});
  assign("first", g.Feed(0), commit);
  Node* const late = g.AddSum("TestSpin", {g.Feed(0)}, {{"micros", 300}}, {commit});
  assign("second", late, commit);
  assign("third", spin(late), commit);
  const auto executor = task.Make(g.Take());
  const auto value = [&](const std::string& name) {
    const auto found = task.device->resources().Lookup(kDefaultContainer, name);
    if (!found.ok()) return int64_t{0};
    const auto read = static_cast<const Variable&>(**found).Read();
    return read.ok() ? read->scalar<int64_t>() : 0;
  };
  for (int i = 1; i <= 100; ++i) {
    TestStep step(0, {Tensor::Scalar<int64_t>(i)});
    std::thread canceller([&] {
      Env::Real().SleepForNanos(i * 10'000);
      step.cancellation.Cancel(Cancelled("enough"));
    });
    (void)executor->Run(step.Args());
    canceller.join();
    EXPECT_EQ(value("first"), value("second"));
    EXPECT_EQ(value("first"), value("third"));
  }
  EXPECT_GT(value("first"), 0);
}

}  // namespace
}  // namespace penstock
