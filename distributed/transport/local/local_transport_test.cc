// SPDX-License-Identifier: Apache-2.0
//
// Tests that the transport waits only through the scheduler that it was given. tests/transport has
// the other tests of this transport.
#include <memory>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/base/sim/sim_scheduler.h"
#include "distributed/transport/testing/test_key.h"
#include "distributed/transport/transport_factory.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int64_t kSecondNanos = 1'000'000'000;

// Steps whose Deliver returns after a simulated second.
class SlowSteps final : public TaskSteps {
 public:
  explicit SlowSteps(SimScheduler& scheduler) : scheduler_(scheduler) {}
  void Subscribe(const std::string&, int64_t, std::shared_ptr<TensorSink> sink) override {
    sink_ = std::move(sink);
  }
  Allocator& AllocatorFor(int64_t, const HashedKey&, DType, const Shape&) override {
    return CpuAllocator();
  }
  void Deliver(int64_t, const HashedKey&, Tensor, bool) override {
    scheduler_.SleepUntil(scheduler_.now_ns() + kSecondNanos);
    ++delivered_;
  }
  void Fail(int64_t, const Status&) override {}

  TensorSink& sink() { return *sink_; }
  int delivered() const { return delivered_; }

 private:
  SimScheduler& scheduler_;
  std::shared_ptr<TensorSink> sink_;
  int delivered_ = 0;
};

// A task of the simulation.
struct LocalTask {
  LocalTask(SimScheduler& scheduler, const std::string& job)
      : id{StrCat("/job:", job, "/replica:0/task:0"), StrCat(job, ":1"), 1}, steps(scheduler) {
    transport = *TransportFactory::Global().Make("local", {.scheduler = &scheduler});
    CHECK_OK(transport->Serve(id, steps));
  }
  const TaskId id;
  SlowSteps steps;
  std::unique_ptr<Transport> transport;
};

TEST(LocalTransportTest, StopLetsTheSimulationRunUntilADeliveryHasEnded) {
  SimScheduler scheduler({});
  const Status status = scheduler.Run([&] {
    LocalTask ps(scheduler, "ps"), worker(scheduler, "worker");
    worker.transport->Subscribe(ps.id, 1);
    const HashedKey key = TestKey("x");
    const auto sender = scheduler.StartThread("sender", [&] {
      ps.steps.sink().Send(1, key, Tensor::Scalar(1.0f), /*is_dead=*/false, [] {});
    });
    scheduler.SleepUntil(scheduler.now_ns() + kSecondNanos / 2);
    EXPECT_EQ(worker.steps.delivered(), 0);
    worker.transport->Stop();
    EXPECT_EQ(worker.steps.delivered(), 1);
  });
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace penstock
