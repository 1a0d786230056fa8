// SPDX-License-Identifier: Apache-2.0
//
// Tests tasks in this process, with several ranks each, on each of the transports.
#include "distributed/collective/exchange.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "distributed/collective/testing/exchange_task.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::collective {
namespace {

using testing::HasSubstr;

using Result = std::future<StatusOr<Tensor>>;

class Tasks {
 public:
  Tasks(const std::string& protocol, int count) : protocol_(protocol) {
    for (int i = 0; i < count; ++i) Start(i);
  }
  ~Tasks() {
    for (auto& [i, task] : tasks_) task->Stop();
  }
  void Start(int i) {
    tasks_[i] = std::make_unique<ExchangeTask>(
        protocol_, i, [this](const std::string&) -> StatusOr<std::vector<TaskId>> {
          std::vector<TaskId> ids;
          for (const auto& [number, task] : tasks_) ids.push_back(task->id());
          return ids;
        });
  }
  // Stops a task as if its process had died.
  void Stop(int i) { tasks_[i]->Stop(); }
  Exchange& exchange(int i) { return tasks_[i]->exchange(); }

  Result Collect(int task, int rank, const std::string& session, CollectiveCall call,
                 int64_t step_id = 1) {
    call.device = ExchangeTask::Device(task, rank);
    if (call.input.valid()) {
      call.dtype = call.input.dtype();
      call.shape = call.input.shape();
    }
    auto promise = std::make_shared<std::promise<StatusOr<Tensor>>>();
    Result result = promise->get_future();
    exchange(task).Collect(session, step_id, std::move(call),
                           [promise](StatusOr<Tensor> r) { promise->set_value(std::move(r)); });
    return result;
  }

 private:
  const std::string protocol_;
  std::map<int, std::unique_ptr<ExchangeTask>> tasks_;
};

StatusOr<Tensor> Get(Result& result) {
  if (result.wait_for(std::chrono::seconds(20)) != std::future_status::ready) {
    return DeadlineExceeded("a collective has not ended within 20 s");
  }
  return result.get();
}

CollectiveCall Sum(int64_t size, Tensor input, int64_t instance = 1) {
  return {.group_key = 7, .group_size = size, .instance_key = instance, .input = std::move(input)};
}

Tensor Ramp(int64_t count, int64_t first) {
  Tensor t(DType::kInt64, Shape({count}));
  for (int64_t i = 0; i < count; ++i) t.mutable_data<int64_t>()[i] = first + i;
  return t;
}

class ExchangeTest : public testing::TestWithParam<const char*> {};

TEST_P(ExchangeTest, RanksOfSeveralDevicesAndTasksAreSummed) {
  for (const int64_t elements : {0, 5, 100'000}) {
    for (const bool one_session : {true, false}) {
      Tasks tasks(GetParam(), 3);
      for (int64_t round = 1; round <= 3; ++round) {
        std::vector<Result> results;
        for (const auto& [task, rank] :
             std::vector<std::pair<int, int>>{{2, 1}, {0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1}}) {
          results.push_back(tasks.Collect(task, rank, one_session ? "s" : StrCat("s", task),
                                          Sum(6, Ramp(elements, task * 10 + rank)), round));
        }
        for (Result& result : results) {
          const auto sum = Get(result);
          ASSERT_TRUE(sum.ok()) << sum.status();
          ASSERT_EQ(sum->num_elements(), elements);
          for (int64_t i = 0; i < elements; ++i) ASSERT_EQ(sum->data<int64_t>()[i], 63 + 6 * i);
        }
      }
    }
  }
}

TEST_P(ExchangeTest, GatherScatterAndBroadcast) {
  Tasks tasks(GetParam(), 2);
  std::vector<Result> gathered, scattered, sent;
  for (int r = 3; r >= 0; --r) {
    CollectiveCall gather = Sum(4, Tensor::Of<float>({1, 2}, {r * 1.f, r + 0.5f}), 1);
    gather.kind = CollectiveKind::kAllGather;
    gathered.push_back(tasks.Collect(r / 2, r % 2, "s", gather));
    CollectiveCall scatter = Sum(4, Tensor::Of<float>({4, 1}, {1, 2, 3, 4}), 2);
    scatter.kind = CollectiveKind::kReduceScatter;
    scatter.divide = true;
    scattered.push_back(tasks.Collect(r / 2, r % 2, "s", scatter));
    CollectiveCall send = Sum(4, r == 2 ? Tensor::Of<float>({3}, {7, 8, 9}) : Tensor(), 3);
    send.kind = CollectiveKind::kBroadcast;
    send.is_source = r == 2;
    send.dtype = DType::kFloat;
    send.shape = Shape({3});
    sent.push_back(tasks.Collect(r / 2, r % 2, "s", send));
  }
  for (int i = 0; i < 4; ++i) {
    const auto all = Get(gathered[i]), part = Get(scattered[i]), copy = Get(sent[i]);
    ASSERT_TRUE(all.ok() && part.ok() && copy.ok())
        << all.status() << part.status() << copy.status();
    EXPECT_EQ(all->ToString(), "float[4,2] 0 0.5 1 1.5 2 2.5 3 3.5");
    EXPECT_EQ(part->ToString(), StrCat("float[1,1] ", 4 - i));
    EXPECT_EQ(copy->ToString(), "float[3] 7 8 9");
  }
}

TEST_P(ExchangeTest, RanksThatDisagreeAreToldSo) {
  Tasks tasks(GetParam(), 2);
  Result a = tasks.Collect(0, 0, "a", Sum(2, Ramp(5, 0)));
  Result b = tasks.Collect(1, 0, "b", Sum(2, Ramp(6, 0)));
  for (Result* result : {&a, &b}) {
    const auto sum = Get(*result);
    EXPECT_TRUE(absl::IsInvalidArgument(sum.status())) << sum.status();
    EXPECT_THAT(std::string(sum.status().message()), HasSubstr("disagree"));
  }
}

TEST_P(ExchangeTest, ATaskThatIsLostEndsTheCollectiveForAllAndIsNamed) {
  Tasks tasks(GetParam(), 3);
  for (int round = 0; round < 2; ++round) {  // before the group has formed, and after
    const std::string era = StrCat("era", round, "-");
    std::vector<Result> results;
    if (round == 1) {
      tasks.Start(2);  // another incarnation
      for (int t = 0; t < 3; ++t) {
        results.push_back(tasks.Collect(t, 0, StrCat(era, t), Sum(3, Ramp(1000, 0))));
      }
      for (Result& result : results) {
        const auto sum = Get(result);
        ASSERT_TRUE(sum.ok()) << sum.status();
      }
      results.clear();
    }
    for (int t = 0; t < 2; ++t) {
      results.push_back(tasks.Collect(t, 0, StrCat(era, t), Sum(3, Ramp(1000, 0))));
    }
    tasks.Stop(2);
    for (Result& result : results) {
      const auto sum = Get(result);
      EXPECT_TRUE(absl::IsUnavailable(sum.status())) << sum.status();
      EXPECT_THAT(std::string(sum.status().message()), HasSubstr("/job:worker/replica:0/task:2"));
    }
  }
}

TEST_P(ExchangeTest, AFailureIsAnErrorOfTheSessionsNextCollectives) {
  Tasks tasks(GetParam(), 2);
  const auto both = [&](const std::string& era) {
    Result a = tasks.Collect(0, 0, era + "a", Sum(2, Ramp(3, 0)));
    Result b = tasks.Collect(1, 0, era + "b", Sum(2, Ramp(3, 0)));
    return std::pair(Get(a).status(), Get(b).status());
  };
  ASSERT_EQ(both("1"), std::pair(OkStatus(), OkStatus()));
  Cancellation cancellation;
  CollectiveCall call = Sum(2, Ramp(3, 0));
  call.cancellation = &cancellation;
  Result cancelled = tasks.Collect(0, 0, "1a", call);
  cancellation.Cancel(DeadlineExceeded("too slow"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(Get(cancelled).status()));
  // The other task gets Aborted, not DeadlineExceeded: its own step was not too slow.
  Status heard;
  for (int i = 0; i < 200 && heard.ok(); ++i) {
    Result late = tasks.Collect(1, 0, "1b", Sum(2, Ramp(3, 0)));
    heard = Get(late).status();
  }
  EXPECT_TRUE(absl::IsAborted(heard)) << heard;
  EXPECT_THAT(std::string(heard.message()), HasSubstr("task:0 has left"));
  EXPECT_THAT(std::string(heard.message()), HasSubstr("too slow"));
  EXPECT_EQ(both("2"), std::pair(OkStatus(), OkStatus()));
}

TEST_P(ExchangeTest, ASessionThatEndsInGoodOrderEndsTheOthersOutOfRange) {
  Tasks tasks(GetParam(), 2);
  Result a = tasks.Collect(0, 0, "a", Sum(2, Ramp(3, 0)));
  Result b = tasks.Collect(1, 0, "b", Sum(2, Ramp(3, 0)));
  ASSERT_TRUE(Get(a).ok() && Get(b).ok());
  Result waits = tasks.Collect(0, 0, "a", Sum(2, Ramp(3, 0)));
  tasks.exchange(1).EndSession("b", Cancelled("session b was closed"));
  const Status status = Get(waits).status();
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("task:1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("session b was closed"));
}

TEST_P(ExchangeTest, AGroupThatDoesNotFormSaysWhoHasCome) {
  Tasks tasks(GetParam(), 2);
  CollectiveCall call = Sum(2, Ramp(3, 0));
  call.timeout_seconds = 0.05;
  Result result = tasks.Collect(1, 0, "a", call);
  const Status status = Get(result).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("1 of its ranks have come"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("task:1/device:CPU:0"));
}

// Collects until a session notices that the group has ended; returns the reason.
Status AwaitEnd(Tasks& tasks, int task, const std::string& session) {
  for (int i = 0; i < 200; ++i) {
    CollectiveCall call = Sum(3, Ramp(3, 0), 9);
    call.timeout_seconds = 5;
    Result late = tasks.Collect(task, 0, session, call);
    const Status heard = Get(late).status();
    if (!heard.ok()) return heard;
  }
  return OkStatus();
}

CollectiveCall Broadcast(int64_t size, bool is_source) {
  CollectiveCall call = Sum(size, is_source ? Ramp(3, 0) : Tensor());
  call.kind = CollectiveKind::kBroadcast;
  call.is_source = is_source;
  call.dtype = DType::kInt64;
  call.shape = Shape({3});
  return call;
}

TEST_P(ExchangeTest, TwoSourcesOfABroadcastAreFoundInAnyOrder) {
  std::vector<int> order = {0, 1, 2};
  do {
    Tasks tasks(GetParam(), 3);
    std::vector<Result> results;
    for (const int t : order) {
      Result formed = tasks.Collect(t, 0, StrCat("s", t), Sum(3, Ramp(3, 0), 8));
      results.push_back(std::move(formed));
    }
    for (Result& result : results) ASSERT_TRUE(Get(result).ok());
    std::vector<Result> broadcasts;
    // Starts the broadcasts one by one, so that the first source has most likely ended when the
    // second begins.
    for (const int t : order) {
      broadcasts.push_back(tasks.Collect(t, 0, StrCat("s", t), Broadcast(3, t != 1)));
      broadcasts.back().wait_for(std::chrono::milliseconds(20));
    }
    for (Result& result : broadcasts) (void)Get(result);  // some may have ended before the error
    for (const int t : order) {
      const Status status = AwaitEnd(tasks, t, StrCat("s", t));
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      for (const char* words : {"group 7 of 3 ranks has two sources", "task:0", "task:2"}) {
        EXPECT_THAT(std::string(status.message()), HasSubstr(words));
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_P(ExchangeTest, ABroadcastWithoutASourceEnds) {
  for (const int count : {1, 3}) {
    for (const int first : {0, 1, 2}) {
      Tasks tasks(GetParam(), count);
      std::vector<Result> results;
      for (int i = 0; i < 2 * count; ++i) {
        const int rank = (i + first) % (2 * count);
        results.push_back(tasks.Collect(rank / 2, rank % 2, "s", Broadcast(2 * count, false)));
      }
      for (Result& result : results) {
        const Status status = Get(result).status();
        EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr("has no source"));
        EXPECT_THAT(std::string(status.message()), HasSubstr("one CollectiveBcastSend"));
        EXPECT_THAT(std::string(status.message()), HasSubstr("task:0/device:CPU:1"));
      }
    }
  }
}

TEST_P(ExchangeTest, TwoSourcesInOneTaskAreFound) {
  Tasks tasks(GetParam(), 1);
  Result a = tasks.Collect(0, 0, "s", Broadcast(2, true));
  Result b = tasks.Collect(0, 1, "s", Broadcast(2, true));
  for (Result* result : {&a, &b}) {
    const Status status = Get(*result).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("two sources"));
  }
}

TEST_P(ExchangeTest, ATimeoutBoundsACollectiveOfAGroupThatHasFormed) {
  Tasks tasks(GetParam(), 2);
  Result a = tasks.Collect(0, 0, "a", Sum(2, Ramp(3, 0)));
  Result b = tasks.Collect(1, 0, "b", Sum(2, Ramp(3, 0)));
  ASSERT_TRUE(Get(a).ok() && Get(b).ok());
  CollectiveCall call = Sum(2, Ramp(3, 0));
  call.timeout_seconds = 0.1;
  Result waits = tasks.Collect(0, 0, "a", call);
  const Status status = Get(waits).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  for (const char* words : {"instance 1 of group 7 of 2 ranks has not ended within 0.1 s",
                            "it waits for /job:worker/replica:0/task:1"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }
}

// Returns the results of a step. If one rank fails, cancels the step for all ranks, as a master
// does.
std::vector<StatusOr<Tensor>> CancelTogether(std::vector<Result>& results,
                                             Cancellation& cancellation) {
  std::vector<std::optional<StatusOr<Tensor>>> ended(results.size());
  for (int round = 0; round < 20'000; ++round) {
    bool all = true;
    for (size_t i = 0; i < results.size(); ++i) {
      if (ended[i].has_value()) continue;
      if (results[i].wait_for(std::chrono::milliseconds(1)) == std::future_status::ready) {
        ended[i] = results[i].get();
        if (!ended[i]->ok()) cancellation.Cancel(Cancelled("another rank has failed"));
      } else {
        all = false;
      }
    }
    if (all) break;
  }
  std::vector<StatusOr<Tensor>> values;
  for (auto& each : ended) {
    values.push_back(each.has_value() ? *std::move(each)
                                      : DeadlineExceeded("not ended within 20 s"));
  }
  return values;
}

// With random orders of ranks and random cancellations, no call hangs, and each call that succeeds
// has the right result.
TEST_P(ExchangeTest, RandomCancellationsNeitherHangNorLie) {
  std::mt19937_64 random(1);
  Tasks tasks(GetParam(), 3);
  for (int64_t step = 1; step <= 200; ++step) {
    Cancellation cancellation;
    const bool cancels = random() % 4 == 0;
    std::vector<Result> results;
    std::vector<int> order = {0, 1, 2};
    std::shuffle(order.begin(), order.end(), random);
    const auto elements = static_cast<int64_t>(random() % 3 == 0 ? 50'000 : 10);
    for (const int t : order) {
      CollectiveCall call = Sum(3, Ramp(elements, t + step));
      call.cancellation = &cancellation;
      results.push_back(tasks.Collect(t, 0, "s", call, step));
      if (cancels && random() % 3 == 0) cancellation.Cancel(Cancelled("enough"));
    }
    if (cancels) cancellation.Cancel(Cancelled("enough"));
    for (const StatusOr<Tensor>& sum : CancelTogether(results, cancellation)) {
      if (!sum.ok()) {
        // A step that begins right after a failure may end with the error of that failure.
        ASSERT_FALSE(absl::IsDeadlineExceeded(sum.status())) << sum.status();
        continue;
      }
      ASSERT_EQ(sum->data<int64_t>()[0], 3 + 3 * step);
      ASSERT_EQ(sum->data<int64_t>()[elements - 1], 3 + 3 * step + 3 * (elements - 1));
    }
    if (!cancels) continue;
    for (int t = 0; t < 3; ++t) tasks.exchange(t).EndSession("s", Cancelled("begin anew"));
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, ExchangeTest, testing::Values("local", "grpc", "shm", "auto"));

}  // namespace
}  // namespace penstock::collective
