// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/worker.h"

#include "core/runtime/testing/sim_test.h"
#include "distributed/worker/testing/test_worker.h"
#include "gmock/gmock.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class WorkerTest : public SimTest {
 protected:
  void Working(const std::function<void()>& body) {
    Simulate([&] {
      worker_.emplace(env_, scheduler_, *timer_);
      body();
      worker_.reset();
    });
  }
  Worker& worker() { return **worker_; }

  std::optional<TestWorker> worker_;
};

TEST_F(WorkerTest, RunsWhatWasRegistered) {
  Working([&] {
    worker_->Begin("s");
    ASSERT_EQ(worker().RegisterGraph("s", 1, TestWorker::PlusOne()), OkStatus());
    for (int64_t step = 1; step <= 3; ++step) {
      const TestWorker::Ran ran = worker_->Run("s", 1, step, 10 * step);
      EXPECT_EQ(ran.status, OkStatus());
      EXPECT_EQ(ran.value, 10 * step + 1);
    }
    EXPECT_EQ(worker().steps().counts().running, 0);
  });
}

// A master repeats a call whose answer was lost.
TEST_F(WorkerTest, ARepeatedCallChangesNothing) {
  Working([&] {
    worker_->Begin("s");
    ASSERT_EQ(worker().RegisterGraph("s", 1, TestWorker::PlusOne()), OkStatus());
    worker_->Begin("s");
    EXPECT_EQ(worker().RegisterGraph("s", 1, TestWorker::Stall()), OkStatus());
    EXPECT_EQ(worker_->Run("s", 1, 1).value, 42);
    EXPECT_EQ(worker_->Run("s", 1, 1).status.code(), StatusCode::kAborted) << "the step has ended";
  });
}

TEST_F(WorkerTest, UnknownSessionsAndGraphsAreAborted) {
  Working([&] {
    const Status session =
        Aborted("session s is not known to ", TestWorker::kName, "; it may have been restarted");
    EXPECT_EQ(worker().RegisterGraph("s", 1, TestWorker::PlusOne()), session);
    EXPECT_EQ(worker().FindGraph("s", 1).status(), session);
    EXPECT_EQ(worker_->Run("s", 1, 1).status, session);
    worker_->Begin("s");
    const Status graph = Aborted("graph 1 of session s is not known to ", TestWorker::kName,
                                 "; it may have been restarted");
    EXPECT_EQ(worker_->Run("s", 1, 2).status, graph);
    ASSERT_EQ(worker().RegisterGraph("s", 1, TestWorker::PlusOne()), OkStatus());
    worker().DeregisterGraph("s", 1);
    worker().DeregisterGraph("s", 1);
    worker().DeregisterGraph("another", 1);
    EXPECT_EQ(worker_->Run("s", 1, 3).status, graph);
    EXPECT_EQ(worker().steps().counts().running, 0);
  });
}

TEST_F(WorkerTest, AGraphMustFitItsDevices) {
  Working([&] {
    worker_->Begin("s");
    EXPECT_EQ(worker().RegisterGraph("s", 1, {}),
              InvalidArgument("a graph without partitions for /job:ps/replica:0/task:0"));
    auto elsewhere = TestWorker::PlusOne();
    elsewhere[0].device = "/job:ps/replica:0/task:0/device:GPU:0";
    EXPECT_EQ(worker().RegisterGraph("s", 1, std::move(elsewhere)),
              InvalidArgument("a partition for /job:ps/replica:0/task:0/device:GPU:0, which "
                              "/job:ps/replica:0/task:0 does not have"));
    EXPECT_EQ(worker().FindGraph("s", 1).status().code(), StatusCode::kAborted);
  });
}

TEST_F(WorkerTest, AFailedStepNamesItsNode) {
  Working([&] {
    worker_->Begin("s");
    TestGraph g;
    g.AddSum("TestFail", {}, {{"message", "end of input"}});
    ASSERT_EQ(worker().RegisterGraph("s", 1, TestWorker::OnCpu(g.Take())), OkStatus());
    const Status status = worker_->Run("s", 1, 1).status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("end of input"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("[[{{node n0}}]]"));
  });
}

TEST_F(WorkerTest, AbortEndsAStepOrKeepsItFromBeginning) {
  Working([&] {
    worker_->Begin("s");
    ASSERT_EQ(worker().RegisterGraph("s", 1, TestWorker::Stall()), OkStatus());
    const int64_t begin = NowMs();
    scheduler_.ScheduleAt(env_.NowNanos() + 1'000'000'000,
                          [&] { worker().AbortStep(1, Unavailable("ps 1 is gone")); });
    EXPECT_EQ(worker_->Run("s", 1, 1).status, Unavailable("ps 1 is gone"));
    EXPECT_EQ(NowMs() - begin, 1'000);
    worker().AbortStep(2, Unavailable("ps 1 is gone"));
    EXPECT_EQ(worker_->Run("s", 1, 2).status.code(), StatusCode::kAborted);
  });
}

TEST_F(WorkerTest, ADeletedSessionTakesItsStepsAlong) {
  Working([&] {
    worker_->Begin("s");
    worker_->Begin("other");
    ASSERT_EQ(worker().RegisterGraph("s", 1, TestWorker::Stall()), OkStatus());
    EXPECT_FALSE(worker().DeletedSinceLastCall());
    scheduler_.ScheduleAt(env_.NowNanos() + 1, [&] {
      worker().DeleteSession("other");
      EXPECT_EQ(worker().steps().counts().running, 1);
      worker().DeleteSession("s");
    });
    EXPECT_EQ(worker_->Run("s", 1, 1).status, Cancelled("session s was closed"));
    EXPECT_TRUE(worker().DeletedSinceLastCall());
    EXPECT_FALSE(worker().DeletedSinceLastCall()) << "since the last call";
    EXPECT_FALSE(worker().has_sessions());
  });
}

// A master that the network has cut off for longer than the lease may still run steps of the
// session. The error of these steps tells its client to make a new session.
TEST_F(WorkerTest, TheEndOfALeaseAbortsItsSteps) {
  Working([&] {
    worker_->Begin("leased", {.lease_ms = 60'000});
    ASSERT_EQ(worker().RegisterGraph("leased", 1, TestWorker::Stall()), OkStatus());
    scheduler_.ScheduleAt(env_.NowNanos() + 61'000'000'000,
                          [&] { worker().DeleteExpiredSessions(); });
    const Status ended = worker_->Run("leased", 1, 1).status;
    EXPECT_TRUE(absl::IsAborted(ended)) << ended;
    EXPECT_THAT(std::string(ended.message()),
                HasSubstr("has ended session leased, because it has not heard its master for 61"));
  });
}

TEST_F(WorkerTest, ALeaseEndsWithoutASignOfTheMaster) {
  Working([&] {
    worker_->Begin("leased", {.lease_ms = 60'000});
    worker_->Begin("for ever");
    Pass(59'000);
    worker().DeleteExpiredSessions();
    EXPECT_THAT(worker().RenewLeases({"leased", "unheard", "for ever"}), ElementsAre("unheard"));
    Pass(59'000);
    worker().DeleteExpiredSessions();
    EXPECT_THAT(worker().RenewLeases({"for ever"}), IsEmpty());
    Pass(2'000);
    worker().DeleteExpiredSessions();
    EXPECT_THAT(worker().RenewLeases({"leased", "for ever"}), ElementsAre("leased"));
    Pass(3'000'000);
    worker().DeleteExpiredSessions();
    EXPECT_TRUE(worker().has_sessions());
  });
}

const TaskId kMaster = {.name = "/job:worker/replica:0/task:0", .address = "w:1", .incarnation = 7};

TEST_F(WorkerTest, ARestartedMasterShortensTheLeasesOfItsEarlierIncarnation) {
  Working([&] {
    TaskId restarted = kMaster, other = kMaster, same_address = kMaster;
    restarted.incarnation = same_address.incarnation = 8;
    other.address = "w:2";
    same_address.name = "/job:worker/replica:0/task:1";
    for (const char* session : {"silent", "alive"}) {
      worker_->Begin(session, {.tasks = {kMaster}, .lease_ms = 60'000});
    }
    worker_->Begin("other", {.tasks = {other, kMaster}, .lease_ms = 60'000});
    worker_->Begin("another task", {.tasks = {same_address}, .lease_ms = 60'000});
    const auto end = [&](int64_t after_s) {
      scheduler_.SleepUntil(env_.NowNanos() + after_s * 1'000'000'000);
      EXPECT_THAT(worker().RenewLeases({"alive"}), IsEmpty());
      worker().DeleteExpiredSessions();
    };
    end(13);
    EXPECT_THAT(worker().RenewLeases({"silent", "other", "another task"}), IsEmpty());
    worker_->Begin("later", {.tasks = {restarted}, .lease_ms = 60'000});
    end(10);
    end(3);
    EXPECT_THAT(worker().RenewLeases({"silent", "alive", "later", "other", "another task"}),
                ElementsAre("silent"))
        << "a master that is heard keeps its sessions, whatever another one says";
  });
}

TEST_F(WorkerTest, AMasterThatIsLostEndsItsStepsButKeepsItsSession) {
  Working([&] {
    worker_->Begin("s", {.tasks = {kMaster}, .lease_ms = 60'000});
    ASSERT_EQ(worker().RegisterGraph("s", 1, TestWorker::Stall()), OkStatus());
    const int64_t begin = NowMs();
    scheduler_.ScheduleAt(env_.NowNanos() + 1'000'000'000, [&] {
      worker().MasterLost(kMaster, Unavailable("heard a second ago"));
      EXPECT_EQ(worker().steps().counts().running, 1);
    });
    scheduler_.ScheduleAt(env_.NowNanos() + 5'000'000'000, [&] {
      TaskId other = kMaster;
      other.incarnation = 8;
      worker().MasterLost(other, Unavailable("another incarnation"));
      EXPECT_EQ(worker().steps().counts().running, 1);
      worker().MasterLost(kMaster, Unavailable("no heartbeats"));
    });
    const Status ended = worker_->Run("s", 1, 1).status;
    EXPECT_EQ(NowMs() - begin, 5'000) << ended;
    EXPECT_EQ(ended, Unavailable(TestWorker::kName,
                                 " has ended the steps of session s, because it has lost their "
                                 "master: no heartbeats"));
    EXPECT_THAT(worker().RenewLeases({"s"}), IsEmpty()) << "the master may come back";
    worker().MasterLost(kMaster, Aborted("has restarted"));
    EXPECT_THAT(worker().RenewLeases({"s"}), ElementsAre("s"));
  });
}

class WorkerStateTest : public WorkerTest {
 protected:
  // Returns a graph that assigns the feed to a variable.
  static std::vector<Partition> Variable() {
    TestGraph g;
    Node* const variable = g.Add("TestVariable", {}, {{"name", "v"}});
    g.Add("TestAssign", {variable, g.Feed(0)});
    return TestWorker::OnCpu(g.Take());
  }
};

TEST_F(WorkerStateTest, VariablesOutliveTheSession) {
  Working([&] {
    worker_->Begin("s");
    ASSERT_EQ(worker().RegisterGraph("s", 1, Variable()), OkStatus());
    ASSERT_EQ(worker_->Run("s", 1, 1).status, OkStatus());
    ASSERT_EQ(worker_->Held().size(), 1u);
    const std::string container = worker_->Held()[0].first;
    worker().DeleteSession("s");
    EXPECT_THAT(worker_->Held(), ElementsAre(Pair(container, "v")));
    worker().Reset({"another"});
    EXPECT_EQ(worker_->Held().size(), 1u);
    worker().Reset({container});
    EXPECT_THAT(worker_->Held(), IsEmpty());
  });
}

TEST_F(WorkerStateTest, AnIsolatedSessionHasItsOwn) {
  Working([&] {
    worker_->Begin("s", {.isolate_state = true});
    ASSERT_EQ(worker().RegisterGraph("s", 1, Variable()), OkStatus());
    ASSERT_EQ(worker_->Run("s", 1, 1).status, OkStatus());
    EXPECT_THAT(worker_->Held(), IsEmpty());
  });
}

TEST_F(WorkerTest, TensorsOfOtherTasksNeedATransportThatKnowsThem) {
  Working([&] {
    worker_->Begin("s");
    TestGraph g;
    g.Add("_Recv", {},
          {{"tensor_type", DType::kInt64},
           {"tensor_name", "x"},
           {"send_device", "/job:ps/replica:0/task:1/device:CPU:0"},
           {"send_device_incarnation", 7},
           {"recv_device", TestWorker::kDevice}});
    ASSERT_EQ(worker().RegisterGraph("s", 1, TestWorker::OnCpu(g.Take())), OkStatus());
    EXPECT_EQ(worker_->Run("s", 1, 1).status,
              Internal("/job:ps/replica:0/task:0 has no transport to other tasks"));
    EXPECT_EQ(worker().steps().counts().running, 0);
  });
}

}  // namespace
}  // namespace penstock
