// SPDX-License-Identifier: Apache-2.0
//
// Tests two replicas, their witness and a worker on a simulated clock and network. While the worker
// runs one step after the other, the test kills processes, and cuts them off from the network, at
// random moments that the seed decides. No acknowledged step may be lost, be applied partially, or
// be applied twice.
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/join.h"
#include "core/base/sim/sim_env.h"
#include "core/base/sim/sim_scheduler.h"
#include "core/base/testing/durations.h"
#include "core/op/variable.h"
#include "distributed/replica/replica.h"
#include "distributed/replica/witness.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int kFaults = 8, kStepsAfter = 20;
constexpr int kVariables = 3;

class World;

// One of the two replicas.
struct Process {
  Process(World& world, int index);
  ~Process() { alive = false; }

  World& world;
  const int index;
  const uint64_t incarnation;
  bool alive = true, cut_off = false, serves = false;
  ReplicaLog log;
  ResourceStore store;
  std::unique_ptr<Replica> replica;
};

class World {
 public:
  explicit World(uint64_t seed) : scheduler_({.seed = seed}), env_(scheduler_, Env::Real()) {}

  void Run() {
    const Status ran = scheduler_.Run([this] {
      Start(0), Start(1);
      auto faults = scheduler_.StartThread("faults", [this] { MakeFaults(); });
      Train();
      faults = nullptr;
      ended_ = true;
      for (auto& process : all_) {
        process->alive = false;
        process->replica->Stop();
      }
      // Waits until all messages under way have arrived.
      scheduler_.SleepUntil(scheduler_.now_ns() + 60'000 * kMilli);
      all_.clear();
    });
    EXPECT_EQ(ran, OkStatus());
  }

  SimScheduler& scheduler() { return scheduler_; }
  SimEnv& env() { return env_; }
  Witness& witness() { return witness_; }
  Process* at(int index) { return pair_[index]; }
  int take_overs() const { return take_overs_; }
  int lost_answers() const { return lost_answers_; }

  int64_t Below(int64_t n) { return static_cast<int64_t>(scheduler_.Random() % n); }
  void Sleep(int64_t nanos) { scheduler_.SleepUntil(scheduler_.now_ns() + nanos); }
  // Calls `then` after the time that a message takes.
  void Send(Scheduler::Closure then) {
    scheduler_.ScheduleAt(scheduler_.now_ns() + 50'000 + Below(2 * kMilli), std::move(then));
  }

  void Start(int index) {
    if (ended_) return;
    all_.push_back(std::make_unique<Process>(*this, index));
    pair_[index] = all_.back().get();
    pair_[index]->replica->Start();
  }
  void Kill(Process& process) {
    process.alive = process.serves = false;
    scheduler_.ScheduleAt(scheduler_.now_ns() + Below(300) * kMilli,
                          [this, index = process.index] { Start(index); });
  }

 private:
  Process* Primary() {
    std::vector<Process*> serving;
    for (Process* process : pair_) {
      if (process->alive && process->serves) serving.push_back(process);
    }
    // Several may serve: a replica that was cut off may not know yet that it is no longer the
    // primary.
    return serving.empty() ? nullptr : serving[Below(static_cast<int64_t>(serving.size()))];
  }

  void MakeFaults() {
    for (int i = 0; i < kFaults; ++i) {
      Process* primary = nullptr;
      while (primary == nullptr || !primary->replica->has_follower() ||
             !pair_[1 - primary->index]->replica->state().whole) {
        Sleep(kMilli);
        primary = Primary();
      }
      Sleep(Below(200) * kMilli + Below(kMilli));
      Process& follower = *pair_[1 - primary->index];
      const int64_t what = Below(10);
      if (what < 6) {
        Kill(*primary);
        ++take_overs_;
      } else if (what < 8) {
        Kill(follower);
      } else {
        // Cuts one replica off from the other one and from the witness; the worker still reaches
        // it.
        Process& cut_off = what == 8 ? *primary : follower;
        cut_off.cut_off = true;
        Sleep(3'000 * kMilli);
        cut_off.cut_off = false;
      }
      // Waits until both replicas have recovered, before the next fault.
      Sleep(2'500 * kMilli);
    }
    faults_done_ = true;
  }

  std::shared_ptr<Variable> Find(Process& process, int i, int64_t step) {
    const std::string name = StrCat("v", i);
    const auto found = process.store.LookupOrCreate("", name, "Variable",
                                                    [&]() -> StatusOr<std::shared_ptr<Resource>> {
                                                      return std::make_shared<Variable>(
                                                          name, DType::kInt64, PartialShape({2}));
                                                    },
                                                    {.step_id = step});
    CHECK_OK(found.status());
    return std::dynamic_pointer_cast<Variable>(*found);
  }

  // Replaces each element x of each variable by 3 x + `number`, with waits between the variables.
  // Returns the answer, or nullopt if the process dies.
  std::optional<Status> TakeStep(Process& process, int64_t number) {
    const int64_t step = ++steps_;
    process.log.StepBegins(step);
    for (int i = 0; i < kVariables; ++i) {
      // Sometimes waits so long that a part of the step's changes is sent.
      Sleep(Below(Below(3) == 0 ? 60 * kMilli : 2 * kMilli));
      if (!process.alive) return std::nullopt;
      const auto variable = Find(process, i, step);
      if (!variable->initialized()) {
        CHECK_OK(variable->Assign(Tensor::Vector<int64_t>({0, 0}), true, {.step_id = step}));
      }
      Variable* const one[] = {variable.get()};
      const auto add = [&](absl::Span<Tensor* const> values) {
        for (int64_t& value : values[0]->mutable_flat<int64_t>()) value = value * 3 + number;
        return OkStatus();
      };
      CHECK_OK(Variable::Update(one, {.step_id = step}, add));
    }
    const auto answer = std::make_shared<std::optional<Status>>();
    process.log.StepEnds(step, OkStatus(), Done([this, answer, &process](Status status) {
                           // If the process is dead, its answer does not arrive.
                           if (process.alive) *answer = std::move(status);
                         }));
    while (!answer->has_value() && process.alive) Sleep(kMilli / 2);
    return *answer;
  }

  // Returns how many steps were applied to the variables. Checks that the number is the same for
  // all of them.
  int64_t StepsIn(Process& process) {
    int64_t steps = -1;
    for (int i = 0; i < kVariables; ++i) {
      int64_t value = 0;
      const auto found = process.store.Lookup("", StrCat("v", i));
      if (found.ok()) {
        const auto read = dynamic_cast<Variable&>(**found).Read();
        if (read.ok()) value = read->flat<int64_t>()[1];
      }
      int64_t expected = 0, count = 0;
      while (expected != value && count < 35) expected = expected * 3 + ++count;
      EXPECT_EQ(expected, value) << "v" << i << " has never been that";
      if (steps < 0) steps = count;
      EXPECT_EQ(count, steps) << "v" << i << " has another number of steps than v0";
    }
    return steps;
  }

  void Train() {
    int64_t acknowledged = 0;
    int after = 0;
    // The values of the variables grow fast, so StartAgain resets them from time to time.
    while (after < kStepsAfter) {
      Process* const process = Primary();
      if (process == nullptr) {
        Sleep(5 * kMilli);
        continue;
      }
      const int64_t seen = StepsIn(*process);
      if (testing::Test::HasFailure()) return;
      // A former primary that was cut off has not seen the latest steps; it must not
      // acknowledge a step.
      const bool lags = seen < acknowledged;
      const std::optional<Status> answer =
          seen >= 30 ? StartAgain(*process) : TakeStep(*process, seen + 1);
      if (!answer.has_value() || !answer->ok()) {
        ++lost_answers_;
        if (seen >= 30) acknowledged = 0;
        continue;
      }
      EXPECT_FALSE(lags) << "step " << acknowledged << " was acknowledged, and is lost";
      acknowledged = seen >= 30 ? 0 : seen + 1;
      after += faults_done_;
    }
  }

  std::optional<Status> StartAgain(Process& process) {
    const int64_t step = ++steps_;
    process.log.StepBegins(step);
    for (int i = 0; i < kVariables; ++i) {
      CHECK_OK(
          Find(process, i, step)->Assign(Tensor::Vector<int64_t>({0, 0}), true, {.step_id = step}));
    }
    const auto answer = std::make_shared<std::optional<Status>>();
    process.log.StepEnds(step, OkStatus(), Done([answer, &process](Status status) {
                           if (process.alive) *answer = std::move(status);
                         }));
    while (!answer->has_value() && process.alive) Sleep(kMilli / 2);
    return *answer;
  }

  SimScheduler scheduler_;
  SimEnv env_;
  Witness witness_;
  std::vector<std::unique_ptr<Process>> all_;
  std::array<Process*, 2> pair_ = {};
  int64_t steps_ = 0;
  int take_overs_ = 0, lost_answers_ = 0;
  bool faults_done_ = false, ended_ = false;
};

// Calls from one process to another. Either may be dead or cut off at any time.
class SimClient final : public ReplicaClient {
 public:
  SimClient(Process& from, bool to_witness) : from_(from), to_witness_(to_witness) {}

  void Greet(const wire::GreetRequest& request, int64_t timeout_ms,
             Answer<wire::GreetResponse> answer) override {
    Call<wire::GreetResponse>(timeout_ms, std::move(answer),
                              [request](Process& to) -> StatusOr<wire::GreetResponse> {
                                return to.replica->Greet(request);
                              });
  }
  void Follow(const wire::FollowRequest& request, int64_t timeout_ms,
              Answer<wire::FollowResponse> answer) override {
    Call<wire::FollowResponse>(timeout_ms, std::move(answer),
                               [request](Process& to) { return to.replica->Follow(request); });
  }
  void Push(const wire::PushRequest& request, int64_t timeout_ms,
            Answer<wire::PushResponse> answer) override {
    Call<wire::PushResponse>(timeout_ms, std::move(answer),
                             [request](Process& to) { return to.replica->Push(request); });
  }
  void Claim(const wire::ClaimRequest& request, int64_t timeout_ms,
             Answer<wire::ClaimResponse> answer) override {
    Call<wire::ClaimResponse>(
        timeout_ms, std::move(answer),
        [request, &world = from_.world](Process&) { return world.witness().Claim(request); });
  }

 private:
  // A call, which ends with the answer or at its timeout, whichever comes first.
  template <class Response>
  struct Pending {
    std::optional<Answer<Response>> answer;
    void End(StatusOr<Response> result) {
      if (!answer.has_value()) return;
      Answer<Response> taken = *std::move(answer);
      answer.reset();
      std::move(taken)(std::move(result));
    }
  };

  template <class Response, class Serve>
  void Call(int64_t timeout_ms, Answer<Response> answer, Serve serve) {
    World& world = from_.world;
    const auto pending = std::make_shared<Pending<Response>>();
    pending->answer = std::move(answer);
    world.scheduler().ScheduleAt(world.scheduler().now_ns() + timeout_ms * kMilli,
                                 [pending] { pending->End(DeadlineExceeded("no answer")); });
    if (!from_.alive) return;
    world.Send([this, &world, pending, serve]() mutable {
      Process* const to = world.at(1 - from_.index);
      if (from_.cut_off || (!to_witness_ && to->cut_off)) return;
      if (!to_witness_ && !to->alive) return pending->End(Unavailable("nobody is there"));
      StatusOr<Response> result = serve(*to);
      world.Send([this, to, pending, result = std::move(result)]() mutable {
        if (from_.cut_off || (!to_witness_ && (to->cut_off || !to->alive))) return;
        pending->End(std::move(result));
      });
    });
  }

  Process& from_;
  const bool to_witness_;
};

Process::Process(World& w, int i)
    : world(w), index(i), incarnation(w.env().RandomU64() | 1), log(w.env(), w.scheduler()) {
  CHECK_OK(store.AttachLog(&log));
  replica = std::make_unique<Replica>(Replica::Options{
      .task = "/job:ps/replica:0/task:0",
      .incarnation = incarnation,
      .index = index,
      .other = StrCat("replica ", 1 - index),
      .store = &store,
      .log = &log,
      .env = &world.env(),
      .scheduler = &world.scheduler(),
      .peer = std::make_shared<SimClient>(*this, false),
      .witness = std::make_shared<SimClient>(*this, true),
      .serve = [this] { serves = alive; },
      .fenced =
          [this](const Status&) {
            if (alive) world.Kill(*this);
          },
      .say =
          [this](const std::string& line) {
            if (std::getenv("REPLICA_SIM_LINES") == nullptr || !alive) return;
            std::printf("%8.3f %s\n", static_cast<double>(world.scheduler().now_ns()) / 1e9,
                        line.c_str());
          },
      .piece_bytes = sizeof(int64_t)});  // the variables' values are sent in two pieces
}

class ReplicaSimTest : public testing::TestWithParam<int> {};

TEST_P(ReplicaSimTest, NoAcknowledgedStepIsLost) {
  // REPLICA_SIM_SEEDS=1000 runs the test for a night.
  const char* const seeds = std::getenv("REPLICA_SIM_SEEDS");
  const int num_seeds = seeds == nullptr ? 8 : std::atoi(seeds);
  int take_overs = 0, lost_answers = 0;
  for (int i = 0; i < num_seeds && !HasFailure(); ++i) {
    const int seed = GetParam() * num_seeds + i;
    SCOPED_TRACE(StrCat("seed ", seed));
    World world(seed);
    world.Run();
    take_overs += world.take_overs();
    lost_answers += world.lost_answers();
  }
  EXPECT_GT(take_overs, 2 * num_seeds);
  EXPECT_GT(lost_answers, num_seeds) << "hardly a step was under way when its server died";
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReplicaSimTest, testing::Range(0, 4));

}  // namespace
}  // namespace penstock
