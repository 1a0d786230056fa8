// SPDX-License-Identifier: Apache-2.0
#include "client/chief_hook.h"

#include <memory>

#include "gtest/gtest.h"

namespace penstock::client {
namespace {

// Counts its calls.
class CountingHook : public TrainingHook {
 public:
  explicit CountingHook(int& steps) : steps_(steps) {}
  Status AfterStep(const StepResult& result, bool* stop) override {
    ++steps_;
    return OkStatus();
  }

 private:
  int& steps_;
};

TEST(ChiefHookTest, IsMadeForEachTimeAsChief) {
  const GraphBuilder graph;
  Session session(graph, nullptr);
  bool is_chief = false, stop = false;
  int made = 0, steps = 0;
  ChiefHook hook([&] { return is_chief; },
                 [&]() -> StatusOr<std::unique_ptr<TrainingHook>> {
                   if (++made == 3) return ResourceExhausted("no third one");
                   return std::make_unique<CountingHook>(steps);
                 });
  const auto run_session = [&](bool chief) {
    is_chief = chief;
    RETURN_IF_ERROR(hook.SessionBegins({.session = session}));
    return hook.AfterStep({}, &stop);
  };
  EXPECT_EQ(run_session(false), OkStatus());
  EXPECT_EQ(steps, 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run_session(true), OkStatus());
  EXPECT_EQ(made, 1);
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(run_session(false), OkStatus());
  EXPECT_EQ(run_session(true), OkStatus());
  EXPECT_EQ(made, 2);
  EXPECT_EQ(run_session(false), OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(run_session(true)));
}

}  // namespace
}  // namespace penstock::client
