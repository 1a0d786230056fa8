// SPDX-License-Identifier: Apache-2.0
//
// Programs with branches and loops, put together at random and run twice: as a graph by the
// executor, and one statement after the other by the plainest interpreter there is. A failing seed
// is in the message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "core/runtime/test_flow.h"
#include "core/runtime/test_ops.h"

namespace penstock {
namespace {

// Values are numbered in the order in which they come up in a block, after those around it.
struct Statement {
  enum Kind { kSum, kCond, kFor } kind = kSum;
  std::vector<int> inputs;  // kFor: the limit, then the first values
  // kSum:
  std::string op;
  Attrs attrs;
  int64_t plus = 0;
  // kCond: two blocks, each of one result. kFor: one, with counter and values before its own.
  std::vector<std::vector<Statement>> blocks;
  std::vector<std::vector<int>> results;  // of the blocks
  int64_t parallel_iterations = 1;
  int number = 0;  // different for each loop
};
using Block = std::vector<Statement>;

struct Kinds {
  int expensive = 0, async = 0;  // percent of the sums
};

class Generator {
 public:
  Generator(uint32_t seed, Kinds kinds) : random_(seed), kinds_(kinds) {}

  Block Make(int values, int depth) {
    Block block;
    for (int n = 2 + Below(depth == 0 ? 6 : 4); n > 0; --n) {
      Statement s = Make1(values, depth);
      values += s.kind == Statement::kFor ? static_cast<int>(s.inputs.size()) - 1 : 1;
      block.push_back(std::move(s));
    }
    return block;
  }
  int Below(int n) { return static_cast<int>(random_() % n); }

  static int Results(const Block& block) {
    int n = 0;
    for (const Statement& s : block) {
      n += s.kind == Statement::kFor ? static_cast<int>(s.inputs.size()) - 1 : 1;
    }
    return n;
  }

 private:
  Statement Make1(int values, int depth) {
    const int choice = depth >= 3 ? 99 : Below(100);
    if (choice < 25) return MakeCond(values, depth);
    if (choice < 50) return MakeFor(values, depth);
    Statement s{.op = "TestSum"};
    for (int n = Below(4); n > 0; --n) s.inputs.push_back(Below(values));
    s.attrs["plus"] = s.plus = Below(10);
    const int kind = Below(100);
    if (kind < kinds_.expensive) {
      s.op = "TestSpin";
      s.attrs["micros"] = Below(3) == 0 ? 10 : 0;
      s.attrs["declared"] = Below(2) == 0;
    } else if (kind < kinds_.expensive + kinds_.async) {
      s.op = "TestAsync";
      s.attrs["inline"] = Below(2) == 0;
    }
    return s;
  }

  Statement MakeCond(int values, int depth) {
    Statement s{.kind = Statement::kCond, .inputs = {Below(values)}};
    for (int i = 0; i < 2; ++i) {
      s.blocks.push_back(Make(values, depth + 1));
      s.results.push_back({Below(values + Results(s.blocks.back()))});
    }
    return s;
  }

  Statement MakeFor(int values, int depth) {
    Statement s{.kind = Statement::kFor, .inputs = {Below(values)}, .number = ++loops_};
    const int carried = 1 + Below(3);
    for (int i = 0; i < carried; ++i) s.inputs.push_back(Below(values));
    s.parallel_iterations = 1 + Below(4);
    const int inside = values + 1 + carried;
    s.blocks.push_back(Make(inside, depth + 1));
    s.results.emplace_back();
    const int all = inside + Results(s.blocks[0]);
    for (int i = 0; i < carried; ++i) s.results[0].push_back(Below(all));
    return s;
  }

  std::mt19937 random_;
  const Kinds kinds_;
  int loops_ = 0;
};

int64_t Add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

void Interpret(const Block& block, std::vector<int64_t>* values) {
  for (const Statement& s : block) {
    std::vector<int64_t>& v = *values;
    if (s.kind == Statement::kSum) {
      int64_t sum = s.plus;
      for (const int i : s.inputs) sum = Add(sum, v[i]);
      v.push_back(sum);
    } else if (s.kind == Statement::kCond) {
      const int taken = (v[s.inputs[0]] & 1) != 0 ? 0 : 1;
      std::vector<int64_t> inside = v;
      Interpret(s.blocks[taken], &inside);
      v.push_back(inside[s.results[taken][0]]);
    } else {
      std::vector<int64_t> carried;
      for (size_t i = 1; i < s.inputs.size(); ++i) carried.push_back(v[s.inputs[i]]);
      for (int64_t i = 0; i < (v[s.inputs[0]] & 3); ++i) {
        std::vector<int64_t> inside = v;
        inside.push_back(i);
        inside.insert(inside.end(), carried.begin(), carried.end());
        Interpret(s.blocks[0], &inside);
        for (size_t c = 0; c < carried.size(); ++c) carried[c] = inside[s.results[0][c]];
      }
      v.insert(v.end(), carried.begin(), carried.end());
    }
  }
}

void Build(const Block& block, FlowBuilder& b, FlowBuilder::Values* values) {
  for (const Statement& s : block) {
    FlowBuilder::Values& v = *values;
    FlowBuilder::Values inputs;
    for (const int i : s.inputs) inputs.push_back(v[i]);
    if (s.kind == Statement::kSum) {
      v.push_back(b.Sum(s.op, inputs, s.attrs));
    } else if (s.kind == Statement::kCond) {
      const auto branch = [&](int i) {
        return [&, i] {
          FlowBuilder::Values inside = v;
          Build(s.blocks[i], b, &inside);
          return inside[s.results[i][0]];
        };
      };
      v.push_back(b.Cond(b.Call("TestOdd", inputs), branch(0), branch(1)));
    } else {
      const Endpoint limit = b.Call("TestLow", {inputs[0]});
      inputs.erase(inputs.begin());
      const auto results = b.For({StrCat("loop", s.number), s.parallel_iterations}, limit, inputs,
                                 [&](const FlowBuilder::Values& carried) {
                                   FlowBuilder::Values inside = v, next;
                                   inside.insert(inside.end(), carried.begin(), carried.end());
                                   Build(s.blocks[0], b, &inside);
                                   for (const int r : s.results[0]) next.push_back(inside[r]);
                                   return next;
                                 });
      v.insert(v.end(), results.begin(), results.end());
    }
  }
}

// A program, its graph, and what it comes to.
class RandomProgram {
 public:
  RandomProgram(uint32_t seed, Kinds kinds) {
    Generator generator(seed, kinds);
    block_ = generator.Make(kFeeds, 0);
    FlowBuilder b;
    FlowBuilder::Values values;
    for (int i = 0; i < kFeeds; ++i) values.push_back(b.Feed(i));
    Build(block_, b, &values);
    for (size_t i = kFeeds; i < values.size(); ++i) fetched_.push_back(static_cast<int>(i));
    for (size_t i = 0; i < fetched_.size(); ++i) {
      b.Fetch(values[fetched_[i]], static_cast<int>(i));
    }
    graph_.emplace(b.Take());
  }
  static constexpr int kFeeds = 2;

  Graph Take() { return *std::move(graph_); }
  int num_fetches() const { return static_cast<int>(fetched_.size()); }
  std::vector<int64_t> Expected(std::vector<int64_t> feeds) const {
    Interpret(block_, &feeds);
    return {feeds.begin() + kFeeds, feeds.end()};
  }

 private:
  Block block_;
  std::optional<Graph> graph_;
  std::vector<int> fetched_;
};

Status RunSomehow(Executor& executor, const StepArgs& args, bool async) {
  if (!async) return executor.Run(args);
  std::optional<Status> ended;
  std::mutex mu;
  std::condition_variable changed;
  executor.RunAsync(args, Done([&](Status status) {
                      std::lock_guard<std::mutex> lock(mu);
                      ended = std::move(status);
                      changed.notify_all();
                    }));
  std::unique_lock<std::mutex> lock(mu);
  changed.wait(lock, [&] { return ended.has_value(); });
  return *ended;
}

std::vector<int64_t> Numbers(const std::vector<Tensor>& tensors) {
  std::vector<int64_t> numbers;
  for (const Tensor& t : tensors) numbers.push_back(t.valid() ? t.scalar<int64_t>() : -1);
  return numbers;
}

void RunProgram(TestTask& task, uint32_t seed, Kinds kinds) {
  SCOPED_TRACE(StrCat("seed ", seed));
  RandomProgram program(seed, kinds);
  const auto executor = task.Make(program.Take());
  for (int run = 0; run < 4; ++run) {
    const std::vector<int64_t> feeds = {run, static_cast<int64_t>(seed) * 7 + run / 2};
    TestStep step(program.num_fetches(), {Tensor::Scalar(feeds[0]), Tensor::Scalar(feeds[1])});
    StepStatsCollector stats;
    if (run == 1) step.stats = &stats;
    const Status status = RunSomehow(*executor, step.Args(), run % 2 == 1);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(Numbers(step.fetches), program.Expected(feeds));
  }
}

class ExecutorRandomFlowTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ExecutorRandomFlowTest, testing::Values(1, 2, 4));

TEST_P(ExecutorRandomFlowTest, CheapNodes) {
  TestTask task(GetParam());
  for (uint32_t seed = 0; seed < 300; ++seed) RunProgram(task, seed, {});
}

TEST_P(ExecutorRandomFlowTest, ExpensiveAndAsyncNodes) {
  TestTask task(GetParam());
  for (uint32_t seed = 1000; seed < 1150; ++seed) {
    RunProgram(task, seed, {.expensive = 30, .async = 30});
  }
}

// Cancelled at a random moment: the step ends with everything or with the cancellation, and the
// executor is as good as new.
TEST_P(ExecutorRandomFlowTest, Cancellations) {
  TestTask task(GetParam());
  int cancelled = 0;
  for (uint32_t seed = 2000; seed < 2060; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    RandomProgram program(seed, {.expensive = 20, .async = 20});
    const auto executor = task.Make(program.Take());
    const std::vector<int64_t> feeds = {3, 11};
    for (int run = 0; run < 5; ++run) {
      TestStep step(program.num_fetches(), {Tensor::Scalar(feeds[0]), Tensor::Scalar(feeds[1])});
      std::thread canceller([&] {
        if (run == 4) return;
        Env::Real().SleepForNanos((seed * 7 + run * 13) % 150 * 1000);
        step.cancellation.Cancel(Aborted("enough"));
      });
      const Status status = RunSomehow(*executor, step.Args(), run % 2 == 1);
      canceller.join();
      if (status.ok()) {
        EXPECT_EQ(Numbers(step.fetches), program.Expected(feeds));
      } else {
        ++cancelled;
        EXPECT_EQ(status, Aborted("enough"));
        EXPECT_NE(run, 4);
      }
    }
  }
  EXPECT_GT(cancelled, 0);
}

TEST_P(ExecutorRandomFlowTest, StepsSideBySide) {
  TestTask task(GetParam());
  for (uint32_t seed = 3000; seed < 3020; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    RandomProgram program(seed, {.expensive = 10, .async = 20});
    const auto executor = task.Make(program.Take());
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (int run = 0; run < 5; ++run) {
          TestStep step(program.num_fetches(),
                        {Tensor::Scalar<int64_t>(t), Tensor::Scalar<int64_t>(run)});
          EXPECT_TRUE(RunSomehow(*executor, step.Args(), (run + t) % 2 == 0).ok());
          EXPECT_EQ(Numbers(step.fetches), program.Expected({t, run}));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace penstock
