// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/testing/sim_test.h"
#include "distributed/worker/testing/test_worker.h"
#include "distributed/worker/worker_client.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr CallOptions kRight = {.incarnation = TestWorker::kIncarnation, .timeout_ms = 1'000};
constexpr CallOptions kAnother = {.incarnation = 4, .timeout_ms = 1'000};

class DirectWorkerClientTest : public SimTest {
 protected:
  void Calling(const std::function<void()>& body) {
    Simulate([&] {
      worker_.emplace(env_, scheduler_, *timer_);
      client_ = NewDirectWorkerClient(**worker_);
      body();
      worker_.reset();
    });
  }
  StatusOr<TaskStatus> Ask(const WorkerClient::StatusQuestion& question,
                           const CallOptions& options) {
    StatusOr<TaskStatus> answer = Internal("the call has not ended");
    client_->GetStatus(question, options, [&](auto a) { answer = std::move(a); });
    return answer;
  }
  Status Create(const std::string& session, const CallOptions& options) {
    Status ended = Internal("the call has not ended");
    client_->CreateSession({.handle = session}, options, Done([&](const Status& s) { ended = s; }));
    return ended;
  }

  std::optional<TestWorker> worker_;
  std::unique_ptr<WorkerClient> client_;
};

TEST_F(DirectWorkerClientTest, TellsTheTasksStatus) {
  Calling([&] {
    ASSERT_EQ(Create("s", kRight), OkStatus());
    const auto status = Ask({.sessions = {"s", "t"}}, {});
    ASSERT_TRUE(status.ok()) << status.status();
    EXPECT_EQ(status->self, (*worker_)->self());
    EXPECT_TRUE(status->serving);
    EXPECT_EQ(status->protocol, "");
    EXPECT_THAT(status->unknown_sessions, ElementsAre("t"));
    EXPECT_THAT(status->devices, IsEmpty()) << "was not asked for";
    const auto devices = Ask({.want_devices = true}, kRight);
    ASSERT_EQ(devices->devices.size(), 1);
    EXPECT_EQ(devices->devices[0].name.ToString(), TestWorker::kDevice);
    EXPECT_EQ(client_->in_process(), &**worker_);
  });
}

// The call comes from a master that does not know yet that the task was restarted.
TEST_F(DirectWorkerClientTest, ACallForAnotherIncarnationChangesNothing) {
  Calling([&] {
    const Status restarted = Aborted("/job:ps/replica:0/task:0 at here:1 has restarted");
    EXPECT_EQ(Ask({}, kAnother).status(), restarted);
    EXPECT_EQ(Create("s", kAnother), restarted);
    EXPECT_FALSE((*worker_)->has_sessions());

    ASSERT_EQ(Create("s", kRight), OkStatus());
    const auto note = [](Status* ended) { return Done([ended](const Status& s) { *ended = s; }); };
    Status ended;
    client_->RegisterGraph("s", 1, TestWorker::PlusOne(), {}, kAnother, note(&ended));
    EXPECT_EQ(ended, restarted);
    EXPECT_FALSE((*worker_)->FindGraph("s", 1).ok());
    client_->RegisterGraph("s", 1, TestWorker::PlusOne(), {}, kRight, note(&ended));
    EXPECT_EQ(ended, OkStatus());
    client_->DeregisterGraph("s", 1, kAnother, note(&ended));
    EXPECT_EQ(ended, restarted);
    EXPECT_TRUE((*worker_)->FindGraph("s", 1).ok());
    client_->RunGraph({.session = "s", .graph = 1, .step_id = 1}, kAnother, note(&ended));
    EXPECT_EQ(ended, restarted);
    client_->AbortStep(1, Cancelled("why"), kAnother, note(&ended));
    EXPECT_EQ(ended, restarted);
    EXPECT_EQ(worker_->Run("s", 1, 1).value, 42) << "it was neither run nor aborted";
    client_->Reset({}, kAnother, note(&ended));
    EXPECT_EQ(ended, restarted);
    client_->DeleteSession("s", kAnother, note(&ended));
    EXPECT_EQ(ended, restarted);
    EXPECT_TRUE((*worker_)->has_sessions());
  });
}

TEST_F(DirectWorkerClientTest, CallsReachTheWorker) {
  Calling([&] {
    ASSERT_EQ(Create("s", kRight), OkStatus());
    Status ended = Internal("the call has not ended");
    const auto note = [&] { return Done([&](const Status& s) { ended = s; }); };
    client_->RegisterGraph("s", 1, TestWorker::Stall(), {}, kRight, note());
    ASSERT_EQ(ended, OkStatus());
    Status ran = Internal("it still runs");
    client_->RunGraph({.session = "s", .graph = 1, .step_id = 9}, kRight,
                      Done([&](const Status& s) { ran = s; }));
    EXPECT_THAT(Ask({}, kRight)->running_steps, ElementsAre(9));
    client_->AbandonStep(9);
    Pass(1);
    EXPECT_EQ(ran, Internal("it still runs")) << "it is in this process: nothing is abandoned";
    client_->AbortStep(9, Cancelled("had enough"), kRight, note());
    Pass(1);
    EXPECT_EQ(ran, Cancelled("had enough"));
    client_->DeregisterGraph("s", 1, kRight, note());
    EXPECT_FALSE((*worker_)->FindGraph("s", 1).ok());
    client_->DeleteSession("s", kRight, note());
    EXPECT_FALSE((*worker_)->has_sessions());
  });
}

TEST_F(DirectWorkerClientTest, ATaskDoesNotShutItselfDown) {
  Calling([&] {
    Status ended;
    client_->Shutdown("the end", kRight, Done([&](const Status& s) { ended = s; }));
    EXPECT_EQ(ended, FailedPrecondition("a task does not shut itself down through its master"));
  });
}

}  // namespace
}  // namespace penstock
