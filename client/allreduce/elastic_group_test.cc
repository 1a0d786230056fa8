// SPDX-License-Identifier: Apache-2.0
//
// Tests ElasticGroup with workers in threads of this process, each with its own program, session
// and server. A worker is lost when its server stops.
#include "client/allreduce/elastic_group.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/allreduce/collective_replicas.h"
#include "client/allreduce/testing/elastic_worker.h"
#include "client/optimizers.h"
#include "client/session.h"
#include "client/training.h"
#include "core/base/testing/eventually.h"
#include "core/checkpoint/checkpoint_state.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::HasSubstr;

class ElasticGroupTest : public testing::Test {
 protected:
  void StartWorkers(ElasticWorker::Options options, int count = kElasticWorkers) {
    options.end = end_;
    for (int w = count - 1; w >= 0; --w) {
      workers_[w] = std::make_unique<ElasticWorker>(cluster_, w, options);
    }
  }
  // Ends a worker's server and program.
  void Kill(int worker) {
    cluster_.Stop("worker", worker);
    workers_[worker]->Stop();
    lost_.push_back(std::move(workers_[worker]));
    workers_.erase(worker);
  }
  // Starts a killed worker again. First waits until its old client has ended, because the client of
  // a really killed process would not use the new task.
  void StartAgain(int worker, ElasticWorker::Options options = {}) {
    for (const auto& lost : lost_) lost->Join();
    options.end = end_;
    cluster_.Restart("worker", worker);
    workers_[worker] = std::make_unique<ElasticWorker>(cluster_, worker, options);
  }
  // Waits until every one of `workers` has said `text` for the n-th time.
  void AwaitSaid(const std::vector<int>& workers, const std::string& text, int n = 1) {
    for (const int w : workers) {
      ASSERT_TRUE(EventuallyIn([&] { return workers_[w]->Said(text) >= n; }))
          << "worker " << w << " has not said '" << text << "' " << n << " times:\n"
          << workers_[w]->said();
    }
  }
  void AwaitSteps(int worker, int64_t more) {
    const int64_t from = workers_[worker]->step();
    ASSERT_TRUE(EventuallyIn([&] { return workers_[worker]->step() >= from + more; }))
        << workers_[worker]->said();
  }
  // Ends the training at all workers, which must end after the same step with the same bits.
  void EndTraining() {
    *end_ = workers_[0]->step() + 20;
    for (auto& [w, worker] : workers_) {
      worker->Join();
      ASSERT_TRUE(worker->status().ok()) << w << ": " << worker->status() << worker->said();
      EXPECT_EQ(worker->step(), workers_[0]->step());
      const Tensor &a = worker->weights(), &b = workers_[0]->weights();
      ASSERT_TRUE(a.valid() && b.valid());
      EXPECT_EQ(std::memcmp(a.raw_data(), b.raw_data(), a.bytes()), 0) << "worker " << w;
    }
  }
  template <class F>
  static bool EventuallyIn(F is, double seconds = 25) {
    for (int i = 0; i < seconds * 100; ++i) {
      if (is()) return true;
      Env::Real().SleepForNanos(10'000'000);
    }
    return false;
  }
  // Joins all workers, which must end well after step 33.
  void JoinWell() {
    for (const auto& [w, worker] : workers_) {
      worker->Join();
      EXPECT_TRUE(worker->status().ok()) << w << ": " << worker->status() << worker->said();
      EXPECT_EQ(worker->step(), 33) << w;
    }
  }
  // When all have saved, worker 2 connects again, and the others end meanwhile. `is_made`: the
  // session with the others is made before their servers stop.
  void TheOthersEndWhileWorker2Connects(bool is_made, const std::string& folder) {
    const auto before = [this, is_made](int worker, const std::string& action) -> Status {
      if (worker != 2) {
        if (action == "end") EventuallyIn([this] { return over_.load(); });
        if (action == "ended") ++count_;
      } else if (action == "end" && !begun_.exchange(true)) {
        return Unavailable("the session is lost");
      } else if (begun_ && (action == "session 2" || action == "session 3")) {
        over_ = true;
        EventuallyIn([this] { return count_ == 2; });
        for (const int w : {0, 1}) cluster_.Stop("worker", w);
        return is_made ? OkStatus() : Unavailable("no session");
      }
      return OkStatus();
    };
    *end_ = 33;
    StartWorkers({.checkpoint_dir = testing::TempDir() + folder, .before = before});
    JoinWell();
    EXPECT_TRUE(over_);
    EXPECT_TRUE(workers_[2]->weights().valid());
  }

  TestCluster cluster_{{{"worker", kElasticWorkers}}};
  std::shared_ptr<std::atomic<int64_t>> end_ = std::make_shared<std::atomic<int64_t>>(1'000'000);
  // For BeforeAction:
  std::atomic<bool> begun_{false}, over_{false};
  std::atomic<int> count_{0};
  std::map<int, std::unique_ptr<ElasticWorker>> workers_;
  std::vector<std::unique_ptr<ElasticWorker>> lost_;
};

TEST_F(ElasticGroupTest, TheOthersGoOnWithoutALostWorkerAndTakeItInWhenItIsBack) {
  StartWorkers({});
  AwaitSaid({0, 1, 2}, "trains with 3 of 3 workers; chief: /job:worker/task:0");
  AwaitSteps(0, 10);
  Kill(2);
  AwaitSaid({0, 1},
            "trains with 2 of 3 workers; chief: /job:worker/task:0; without "
            "/job:worker/task:2");
  AwaitSteps(0, 10);
  StartAgain(2);
  AwaitSaid({0, 1}, "trains with 3 of 3 workers", 2);
  AwaitSaid({2}, "trains with 3 of 3 workers");
  AwaitSteps(2, 10);
  EndTraining();
  // No step was taken twice, and no batch was used twice.
  std::set<int64_t> numbers;
  size_t used = 0;
  for (auto& [w, worker] : workers_) lost_.push_back(std::move(worker));
  for (const auto& worker : lost_) {
    const auto own = worker->numbers();
    used += own.size();
    numbers.insert(own.begin(), own.end());
  }
  EXPECT_EQ(numbers.size(), used);
  // A worker that is lost in a step does not know that the others have completed it.
  EXPECT_GE(static_cast<int64_t>(used) + kElasticWorkers, *numbers.rbegin() + 1);
}

TEST_F(ElasticGroupTest, IfTheChiefIsLostTheNextWorkerIsChief) {
  StartWorkers({});
  AwaitSteps(0, 10);
  Kill(0);
  AwaitSaid({1, 2}, "trains with 2 of 3 workers; chief: /job:worker/task:1");
  const int64_t step = workers_[1]->step();
  AwaitSteps(1, 10);
  StartAgain(0);
  AwaitSaid({0}, "trains with 3 of 3 workers; chief: /job:worker/task:0");
  AwaitSteps(0, 1);
  // Worker 0 has the values of the others.
  EXPECT_GT(workers_[0]->step(), step);
  EndTraining();
}

TEST_F(ElasticGroupTest, IfAllLoseTheirValuesTheyGoOnFromTheCheckpoint) {
  const ElasticWorker::Options options{.checkpoint_dir = testing::TempDir() + "/elastic_all_lost"};
  StartWorkers(options);
  AwaitSteps(0, 50);
  for (int w = 0; w < kElasticWorkers; ++w) Kill(w);
  for (int w = 0; w < kElasticWorkers; ++w) StartAgain(w, options);
  AwaitSaid({0, 1, 2}, "trains with 3 of 3 workers");
  EXPECT_GE(workers_[0]->Said("restored "), 1) << workers_[0]->said();
  AwaitSteps(1, 10);
  EndTraining();
}

TEST_F(ElasticGroupTest, ATrainingStartsWithAllWorkers) {
  cluster_.Stop("worker", 2);
  StartWorkers({.wait_seconds = 6}, 2);
  // The last attempt may end with another error, because tasks answer late on a busy machine.
  AwaitSaid({0, 1}, "a training starts with all workers; missing: /job:worker/task:2");
  for (const int w : {0, 1}) {
    workers_[w]->Join();
    EXPECT_TRUE(absl::IsDeadlineExceeded(workers_[w]->status())) << workers_[w]->status();
  }
}

TEST_F(ElasticGroupTest, FewerThanHalfDoNotGoOn) {
  StartWorkers({.wait_seconds = 6});
  AwaitSteps(0, 10);
  cluster_.Stop("worker", 1);
  cluster_.Stop("worker", 2);
  // The last attempt may end with another error, because tasks answer late on a busy machine.
  AwaitSaid({0},
            "1 of 3 workers take part, and it takes 2 to train; missing: /job:worker/task:1, "
            "/job:worker/task:2");
  workers_[0]->Join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(workers_[0]->status())) << workers_[0]->status();
}

TEST_F(ElasticGroupTest, AChiefThatStopsAloneDoesNotHideALaterCheckpointOfTheOthers) {
  const ElasticWorker::Options options{.checkpoint_dir = testing::TempDir() + "/elastic_alone"};
  StartWorkers(options);
  AwaitSteps(0, 30);
  Kill(1);
  Kill(2);
  AwaitSaid({0}, "1 of 3 workers take part");
  // Writes a state file as if the others had gone on, which worker 0 cannot know.
  ASSERT_TRUE(WriteCheckpointState(Env::Real(), options.checkpoint_dir,
                                   {.latest = "model.ckpt-999999", .all = {"model.ckpt-999999"}})
                  .ok());
  workers_[0]->Stop();
  workers_[0]->Join();
  EXPECT_TRUE(workers_[0]->status().ok()) << workers_[0]->status();
  const auto state = ReadCheckpointState(Env::Real(), options.checkpoint_dir);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->latest, "model.ckpt-999999");
}

TEST_F(ElasticGroupTest, AWorkerWithoutDataEndsTheTrainingOfAll) {
  for (int w = 0; w < kElasticWorkers; ++w) {
    ElasticWorker::Options options;
    *options.end = w == 1 ? 7 : 1000;
    workers_[w] = std::make_unique<ElasticWorker>(cluster_, w, options);
  }
  EndTraining();
  EXPECT_EQ(workers_[0]->step(), 7);
  EXPECT_EQ(workers_[0]->Said("ends after step 7: the data of a worker have ended"), 1);
}

TEST_F(ElasticGroupTest, AWorkerThatIsToldToStopLeavesTheOthers) {
  StartWorkers({});
  AwaitSteps(0, 5);
  workers_[1]->Stop();
  workers_[1]->Join();
  EXPECT_TRUE(workers_[1]->status().ok()) << workers_[1]->status();
  workers_.erase(1);
  // The worker's task still answers.
  AwaitSaid({0, 2},
            "trains with 2 of 3 workers; chief: /job:worker/task:0; without "
            "/job:worker/task:1");
  AwaitSteps(0, 5);
  EndTraining();
}

TEST_F(ElasticGroupTest, IfTheChiefIsLostInItsLastSaveTheNextOneSaves) {
  const ElasticWorker::Options options{.checkpoint_dir = testing::TempDir() + "/elastic_last_save",
                                       .dies_in_last_save = 0};
  *end_ = 33;  // no other save is due then
  StartWorkers(options);
  for (const auto& [w, worker] : workers_) worker->Join();
  EXPECT_FALSE(workers_[0]->status().ok());
  for (const int w : {1, 2}) {
    EXPECT_TRUE(workers_[w]->status().ok()) << workers_[w]->status() << workers_[w]->said();
    EXPECT_EQ(workers_[w]->step(), 33);
  }
  const auto state = ReadCheckpointState(Env::Real(), options.checkpoint_dir);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->latest, "model.ckpt-33");
}

TEST_F(ElasticGroupTest, IfNobodyIsLeftToSaveTheErrorSaysSo) {
  ElasticWorker::Options options{.wait_seconds = 6,
                                 .checkpoint_dir = testing::TempDir() + "/elastic_not_saved",
                                 .dies_in_last_save = 0};
  options.end = end_;
  *end_ = 33;
  // Worker 1 also stops then, so one of three is left.
  for (int w = 0; w < kElasticWorkers; ++w) {
    options.stops_after_step = w == 1 ? 33 : 0;
    workers_[w] = std::make_unique<ElasticWorker>(cluster_, w, options);
  }
  workers_[1]->Join();
  workers_[2]->Join();
  EXPECT_THAT(
      std::string(workers_[2]->status().message()),
      HasSubstr("all steps were taken, but the last checkpoint, of step 33, was not saved"));
}

TEST_F(ElasticGroupTest, HooksEndAloneIfTheOthersHaveEnded) {
  TheOthersEndWhileWorker2Connects(/*is_made=*/false, "/elastic_alone_without_session");
}

TEST_F(ElasticGroupTest, HooksEndAloneIfTheSessionsOtherTasksHaveEnded) {
  TheOthersEndWhileWorker2Connects(/*is_made=*/true, "/elastic_alone_with_session");
}

TEST_F(ElasticGroupTest, IfTheWatchFailsToEndAWaitItTriesAgain) {
  const auto before = [this](int worker, const std::string& action) -> Status {
    if (worker == 2 && begun_) {  // its client is gone
      if (action == "batch") EventuallyIn([this] { return over_.load(); }, 100);
      return Unavailable("gone");
    }
    const bool leaves = worker == 1 && begun_ && action == "elastic/leave";
    return leaves && count_.fetch_add(1) == 0 ? Unavailable("the first attempt") : OkStatus();
  };
  StartWorkers({.step_seconds = 60, .before = before});
  AwaitSteps(0, 5);
  begun_ = true;
  AwaitSaid({0, 1},
            "trains with 2 of 3 workers; chief: /job:worker/task:0; without "
            "/job:worker/task:2");
  EXPECT_GE(count_, 2);
  workers_[2]->Stop();
  over_ = true;
  lost_.push_back(std::move(workers_[2]));
  workers_.erase(2);
  AwaitSteps(0, 5);
  EndTraining();
}

TEST_F(ElasticGroupTest, ALastSaveMayTakeLongerThanAStep) {
  const auto before = [](int worker, const std::string& action) {
    if (action == "save") Env::Real().SleepForNanos(6'000'000'000);
    return OkStatus();
  };
  *end_ = 33;
  StartWorkers({.checkpoint_dir = testing::TempDir() + "/elastic_long_save",
                .step_seconds = 4,
                .before = before});
  JoinWell();
}

TEST_F(ElasticGroupTest, TheErrorOfALateLastSaveNamesTheChief) {
  const auto before = [](int worker, const std::string& action) {
    if (action == "save") Env::Real().SleepForNanos(6'000'000'000);
    return OkStatus();
  };
  *end_ = 33;
  StartWorkers({.wait_seconds = 6,
                .checkpoint_dir = testing::TempDir() + "/elastic_late_save",
                .last_save_seconds = 1,
                .before = before});
  std::string errors;
  for (const int w : {1, 2}) {
    workers_[w]->Join();
    errors += workers_[w]->status().ToString();
  }
  // The first of the two whose time is over ends the wait of the other.
  EXPECT_THAT(errors, HasSubstr("waiting until /job:worker/task:0 (the chief) has saved the last "
                                "checkpoint"));
}

TEST_F(ElasticGroupTest, AfterARestoreTheEndOfTheDataIsReachedAgain) {
  const auto before = [this](int worker, const std::string& action) {
    if (action == "save" && !begun_.exchange(true)) {
      for (int w = 0; w < kElasticWorkers; ++w) cluster_.Restart("worker", w);
    }
    return OkStatus();
  };
  *end_ = 33;
  StartWorkers({.checkpoint_dir = testing::TempDir() + "/elastic_end_again", .before = before});
  JoinWell();
  EXPECT_GE(workers_[0]->Said("restored "), 1) << workers_[0]->said();
}

TEST(ElasticGroupMistakes, AreTheProgramsError) {
  const auto error = [](ElasticGroup::Options options) {
    Program program;
    const ElasticGroup group(program, std::move(options));
    return std::string(program.status().message());
  };
  EXPECT_THAT(error({.workers = ElasticNames(), .worker = 3}), HasSubstr("no worker 3 of 3"));
  EXPECT_THAT(error({.workers = ElasticNames(), .min_workers = 4}), HasSubstr("min_workers=4"));
  EXPECT_THAT(error({.workers = {"worker"}}), HasSubstr("'worker': expected a task"));
  EXPECT_THAT(error({.workers = ElasticNames(), .form_seconds = 0}),
              HasSubstr("form_seconds=0, rejoin_seconds=10, present_seconds=10: all must be more "
                        "than 0"));
  EXPECT_THAT(error({.workers = ElasticNames(), .rejoin_seconds = 0}),
              HasSubstr("rejoin_seconds=0, present_seconds=10: all must be more than 0"));
}

TEST(ElasticGroupMistakes, RunReturnsTheProgramsError) {
  Program program;
  const Variable w(program, "w", {1}, Ones());
  const Output agree = w.Read(), train = w.AssignAdd(w.Read());
  ElasticGroup group(program, {.workers = ElasticNames(), .worker = 3});
  TrainingLoop loop(
      program, {.train = train},
      {.target = "grpc://localhost:1", .agree = agree, .group = &group, .stop_on_signals = false});
  EXPECT_THAT(std::string(loop.Run().message()), HasSubstr("no worker 3 of 3"));
}

TEST(ElasticGroupMistakes, AverageOfALossAfterTheGradients) {
  Program program;
  ElasticGroup group(program, {.workers = ElasticNames()});
  CollectiveReplicas replicas(program, {.workers = kElasticWorkers, .group = &group});
  const Variable w(program, "w", {2}, Ones());
  const Output loss = Mean(Square(w.Read()), Constant(program, Tensor::Vector<int32_t>({0})));
  GradientDescent optimizer(0.1);
  replicas.Average(optimizer.ComputeGradients(program, loss));
  ASSERT_TRUE(program.status().ok()) << program.status();
  replicas.Average(loss);
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("before the gradients"));
}

TEST(ElasticGroupMistakes, OptionsThatDoNotGoWithAGroup) {
  const auto error = [](const std::function<void(TrainingOptions*)>& change) {
    Program program;
    ElasticGroup group(program, {.workers = ElasticNames()});
    const Variable w(program, "w", {1}, Ones());
    TrainingOptions options{.target = "grpc://localhost:1", .agree = w.Read(), .group = &group};
    options.stop_on_signals = false;
    change(&options);
    TrainingLoop loop(program, {.train = w.AssignAdd(w.Read())}, options);
    return std::string(loop.Run().message());
  };
  EXPECT_THAT(error([](auto* o) { o->agree = {}; }), HasSubstr("group: needs `agree`"));
  EXPECT_THAT(error([](auto* o) { o->target = ""; }), HasSubstr("group: needs a cluster"));
  EXPECT_THAT(error([](auto* o) { o->session.device_filters = {"/job:ps"}; }),
              HasSubstr("leave device_filters out"));
}

}  // namespace
}  // namespace penstock::client
