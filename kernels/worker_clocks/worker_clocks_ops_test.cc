// SPDX-License-Identifier: Apache-2.0
//
// Tests the ops on WorkerClocks: steps that end with and without WorkerClocksAdvance, and arguments
// that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/op/testing/op_runner.h"
#include "core/tensor/tensor.h"
#include "kernels/worker_clocks/worker_clocks.h"

namespace penstock {
namespace {

using testing::HasSubstr;

class WorkerClocksOps : public testing::Test {
 protected:
  WorkerClocksOps() : handle_(*Make(2).Run1()) {}

  OpRunner Make(int64_t workers) {
    OpRunner run("WorkerClocks", resources_);
    run.Attr("workers", workers).Attr("shared_name", "c");
    return run;
  }
  OpRunner Run(const char* op) {
    OpRunner run(op, resources_);
    run.In(handle_);
    return run;
  }
  OpRunner RunFor(const char* op, int64_t worker) {
    OpRunner run = Run(op);
    run.Attr("worker", worker);
    return run;
  }
  // Returns the clocks, each with "+" if the worker counts.
  std::string Clocks() {
    const auto read = Run("WorkerClocksRead").Run();
    CHECK_OK(read.status());
    std::string text;
    for (int i = 0; i < (*read)[0].num_elements(); ++i) {
      StrAppend(&text, " ", (*read)[0].flat<int64_t>()[i], (*read)[1].flat<bool>()[i] ? "+" : "");
    }
    return text;
  }

  std::shared_ptr<ResourceStore> resources_ = std::make_shared<ResourceStore>();
  Tensor handle_;
};

TEST_F(WorkerClocksOps, AStepAndAFailedOne) {
  // OpRunner destroys the kernel after the call, so the test adds another holder in place of a
  // kernel that a session keeps.
  const auto clocks = std::static_pointer_cast<WorkerClocks>(*resources_->Lookup("", "c"));
  clocks->AddHolder(0);
  EXPECT_EQ(Clocks(), " 0 0");
  auto step = std::make_shared<ResourceStore>();
  ASSERT_TRUE(RunFor("WorkerClocksBegin", 0).StepResources(step).Run().ok());
  EXPECT_EQ(Clocks(), " 0+ 0");
  const auto advanced = RunFor("WorkerClocksAdvance", 0).Attr("bound", 0).StepResources(step).Run();
  ASSERT_TRUE(advanced.ok()) << advanced.status();
  EXPECT_EQ((*advanced)[0].scalar<int64_t>(), 1);
  EXPECT_LT((*advanced)[1].scalar<double>(), 5);
  step = nullptr;
  EXPECT_EQ(Clocks(), " 1+ 0") << "the step has advanced before it ended";
  step = std::make_shared<ResourceStore>();
  ASSERT_TRUE(RunFor("WorkerClocksBegin", 0).StepResources(step).Run().ok());
  step = nullptr;
  EXPECT_EQ(Clocks(), " 1 0") << "the step has ended without WorkerClocksAdvance";
}

TEST_F(WorkerClocksOps, AWorkerWithoutKernelsDoesNotCount) {
  const auto step = std::make_shared<ResourceStore>();
  ASSERT_TRUE(RunFor("WorkerClocksBegin", 0).StepResources(step).Run().ok());
  EXPECT_EQ(Clocks(), " 0 0");
}

TEST_F(WorkerClocksOps, AWorkerThatLeavesDoesNotCount) {
  ASSERT_TRUE(RunFor("WorkerClocksAdvance", 1).Attr("bound", 0).Run().ok());
  EXPECT_EQ(Clocks(), " 0 1+");
  ASSERT_TRUE(RunFor("WorkerClocksLeave", 1).Run().ok());
  EXPECT_EQ(Clocks(), " 0 1");
}

TEST_F(WorkerClocksOps, ATimeoutEndsAWait) {
  ASSERT_TRUE(RunFor("WorkerClocksAdvance", 1).Attr("bound", 0).Run().ok());
  const auto advance = [&] {
    return RunFor("WorkerClocksAdvance", 0).Attr("bound", 0).Attr("timeout_ms", 20).Run();
  };
  ASSERT_TRUE(advance().ok());  // the clock is 2, because the worker began with that of the other
  const auto waited = advance();
  ASSERT_TRUE(waited.ok()) << waited.status();
  EXPECT_EQ(Clocks(), " 3+ 1");
}

TEST_F(WorkerClocksOps, ArgumentsThatDoNotFit) {
  const auto error = [](OpRunner run) {
    const Status status = run.Run().status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  for (const char* op : {"WorkerClocksBegin", "WorkerClocksLeave"}) {
    EXPECT_THAT(error(RunFor(op, 2)), HasSubstr("worker is 2, but WorkerClocks 'c' has workers"));
    EXPECT_THAT(error(RunFor(op, -1)), HasSubstr("worker"));
  }
  EXPECT_THAT(error(RunFor("WorkerClocksAdvance", 2).Attr("bound", 0)), HasSubstr("worker is 2"));
  EXPECT_THAT(error(RunFor("WorkerClocksAdvance", 0).Attr("bound", -1)), HasSubstr("bound"));
  EXPECT_THAT(error(RunFor("WorkerClocksAdvance", 0).Attr("bound", 0).Attr("timeout_ms", -1)),
              HasSubstr("timeout_ms"));
  EXPECT_THAT(error(Make(0)), HasSubstr("workers"));
  EXPECT_THAT(error(Make(3)), HasSubstr("with 2 workers where this node says 3"));
  OpRunner no_handle("WorkerClocksRead");
  no_handle.In(Tensor::Scalar(ResourceHandle{.name = "none", .type = "WorkerClocks"}));
  EXPECT_EQ(no_handle.Run().status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace penstock
