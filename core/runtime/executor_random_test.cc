// SPDX-License-Identifier: Apache-2.0
//
// Runs random graphs with the executor and with a simple interpreter. The results must be the same,
// for any mixture of cheap, expensive, asynchronous and failing nodes, on any number of threads,
// cancelled or not. The message of a failure has the seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "core/runtime/testing/run_step.h"
#include "core/runtime/testing/test_ops.h"

namespace penstock {
namespace {

using testing::HasSubstr;

struct Kinds {
  int expensive = 0, async = 0, fail = 0, no_op = 0;  // percentages of the nodes
};

// A graph and its expected results.
class RandomGraph {
 public:
  RandomGraph(uint32_t seed, const Kinds& kinds) : random_(seed), kinds_(kinds) {
    const int nodes = 1 + Below(50);
    const int recent = 1 + Below(nodes);  // long and thin, or short and wide
    for (int i = 0; i < num_feeds(); ++i) values_.push_back(g_.Feed(i));
    for (int i = 0; i < nodes; ++i) AddRandom(recent);
    for (Node* node : values_) {
      if (Below(4) == 0) g_.Fetch(node, num_fetches_++);
    }
    edges_ = Edges();
  }

  int num_feeds() const { return 2; }
  int num_fetches() const { return num_fetches_; }
  int num_nodes() const { return g_.graph().num_nodes(); }
  // Pairs (before, after) of names.
  const std::vector<std::pair<std::string, std::string>>& edges() const { return edges_; }

  // Runs the nodes in the order of their creation, which is topological. Failed nodes, and nodes
  // that depend on them, have no value.
  std::vector<std::optional<int64_t>> Interpret(const std::vector<int64_t>& feeds) {
    std::map<const Node*, std::optional<int64_t>> results;
    std::vector<std::optional<int64_t>> fetched(num_fetches_);
    for (Node* node : g_.graph().nodes()) {
      std::optional<int64_t> result = Evaluate(node, feeds, results);
      if (node->op_name() == "_Fetch") fetched[*node->attr<int64_t>("index")] = result;
      results[node] = result;
    }
    return fetched;
  }

  // Returns the names of the nodes that fail and depend on no other failing node.
  std::set<std::string> FirstFailures() {
    std::map<const Node*, bool> broken;
    std::set<std::string> first;
    for (Node* node : g_.graph().nodes()) {
      bool after_failure = false;
      for (const Endpoint& in : node->inputs()) after_failure |= broken[in.node];
      for (const Node* before : node->control_inputs()) after_failure |= broken[before];
      if (!after_failure && Fails(node)) first.insert(node->name());
      broken[node] = after_failure || Fails(node);
    }
    return first;
  }

  Graph Take() { return g_.Take(); }

 private:
  int Below(int n) { return static_cast<int>(random_() % n); }
  bool OneIn100(int times) { return Below(100) < times; }

  static bool Fails(const Node* node) {
    const bool* fail = node->attr<bool>("fail");
    return node->op_name() == "TestFail" || (fail != nullptr && *fail);
  }

  static std::optional<int64_t> Evaluate(Node* node, const std::vector<int64_t>& feeds,
                                         std::map<const Node*, std::optional<int64_t>>& results) {
    if (Fails(node)) return std::nullopt;
    for (const Node* before : node->control_inputs()) {
      if (!results[before].has_value()) return std::nullopt;
    }
    if (node->op_name() == "_Feed") return feeds[*node->attr<int64_t>("index")];
    const int64_t* plus = node->attr<int64_t>("plus");
    uint64_t sum = plus == nullptr ? 0 : *plus;
    for (const Endpoint& in : node->inputs()) {
      if (!results[in.node].has_value()) return std::nullopt;
      sum += static_cast<uint64_t>(*results[in.node]);
    }
    return static_cast<int64_t>(sum);
  }

  void AddRandom(int recent) {
    const auto pick = [&](const std::vector<Node*>& from) {
      const int n = static_cast<int>(from.size());
      return from[n - 1 - Below(std::min(n, recent))];
    };
    std::vector<Node*> after, inputs;
    for (int n = Below(6) == 0 ? 1 + Below(3) : 0; n > 0; --n)
      after.push_back(pick(all_or_values()));
    if (OneIn100(kinds_.no_op)) {
      all_.push_back(g_.Add("NoOp", {}, {}, after));
      return;
    }
    for (int n = Below(4); n > 0; --n) inputs.push_back(pick(values_));
    Attrs attrs = {{"plus", Below(1000)}};
    std::string op = "TestSum";
    if (OneIn100(kinds_.expensive)) {
      op = "TestSpin";
      attrs["micros"] = Below(3) == 0 ? 20 : 1;
      attrs["declared"] = Below(2) == 0;
    } else if (OneIn100(kinds_.async)) {
      op = "TestAsync";
      attrs["inline"] = Below(3) == 0;
      attrs["fail"] = OneIn100(kinds_.fail);
    } else if (OneIn100(kinds_.fail)) {
      op = "TestFail";
    }
    Node* const node = g_.AddSum(op, inputs, std::move(attrs), after);
    values_.push_back(node);
    all_.push_back(node);
  }

  const std::vector<Node*>& all_or_values() const { return all_.empty() ? values_ : all_; }

  std::vector<std::pair<std::string, std::string>> Edges() {
    std::vector<std::pair<std::string, std::string>> edges;
    for (Node* node : g_.graph().nodes()) {
      for (const Endpoint& in : node->inputs()) edges.emplace_back(in.node->name(), node->name());
      for (const Node* in : node->control_inputs()) edges.emplace_back(in->name(), node->name());
    }
    return edges;
  }

  std::mt19937 random_;
  const Kinds kinds_;
  TestGraph g_;
  std::vector<Node*> values_, all_;
  int num_fetches_ = 0;
  std::vector<std::pair<std::string, std::string>> edges_;
};

std::string NodeOf(const Status& status) {
  const std::string message(status.message());
  const size_t begin = message.find("{{node ");
  const size_t end = message.find("}}", begin);
  if (begin == std::string::npos || end == std::string::npos) return "";
  return message.substr(begin + 7, end - begin - 7);
}

// Checks that every node ran once, after the nodes that it depends on.
void ExpectOrder(const RandomGraph& graph, const std::vector<DeviceStats>& stats) {
  std::map<std::string, NodeStats> nodes;
  for (const DeviceStats& device : stats) {
    for (const NodeStats& node : device.nodes) {
      EXPECT_TRUE(nodes.emplace(node.node, node).second) << node.node << " ran twice";
    }
  }
  EXPECT_EQ(nodes.size(), static_cast<size_t>(graph.num_nodes()));
  for (const auto& [before, after] : graph.edges()) {
    EXPECT_LE(nodes[before].end_ns, nodes[after].start_ns) << before << " -> " << after;
  }
}

void CheckFetches(const std::vector<std::optional<int64_t>>& expected,
                  const std::vector<Tensor>& fetches) {
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(expected[i].has_value());
    ASSERT_TRUE(fetches[i].valid()) << "fetch " << i;
    EXPECT_EQ(fetches[i].scalar<int64_t>(), *expected[i]) << "fetch " << i;
  }
}

// Runs one graph several times, each time with other feeds.
void RunGraph(TestTask& task, uint32_t seed, const Kinds& kinds) {
  SCOPED_TRACE(StrCat("seed ", seed));
  RandomGraph graph(seed, kinds);
  RandomGraph twin(seed, kinds);  // for the interpreter; the executor gets `graph`
  const std::set<std::string> failures = twin.FirstFailures();
  const auto executor = task.Make(graph.Take());
  for (int run = 0; run < 5; ++run) {
    const std::vector<int64_t> feeds = {run, int64_t{seed} * 31};
    TestStep step(graph.num_fetches(), {Tensor::Scalar(feeds[0]), Tensor::Scalar(feeds[1])});
    StepStatsCollector stats;
    if (run == 1) step.stats = &stats;
    const Status status =
        RunStep(*executor, step.Args(), run % 2 == 1 ? RunMode::kRunAsync : RunMode::kRun);
    if (failures.empty()) {
      ASSERT_TRUE(status.ok()) << status;
      CheckFetches(twin.Interpret(feeds), step.fetches);
      if (run == 1) ExpectOrder(twin, stats.Take());
    } else {
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(failures.count(NodeOf(status)), 1u) << status;
    }
  }
}

class ExecutorRandomTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ExecutorRandomTest, testing::Values(1, 2, 4));

TEST_P(ExecutorRandomTest, CheapNodes) {
  TestTask task(GetParam());
  for (uint32_t seed = 0; seed < 500; ++seed) RunGraph(task, seed, {.no_op = 20});
}

TEST_P(ExecutorRandomTest, ExpensiveNodes) {
  TestTask task(GetParam());
  for (uint32_t seed = 0; seed < 150; ++seed) {
    RunGraph(task, 1000 + seed, {.expensive = 40, .no_op = 10});
  }
}

TEST_P(ExecutorRandomTest, AsyncNodes) {
  TestTask task(GetParam());
  for (uint32_t seed = 0; seed < 300; ++seed) {
    RunGraph(task, 2000 + seed, {.async = 40, .no_op = 10});
  }
}

TEST_P(ExecutorRandomTest, AllTogetherAndFailures) {
  TestTask task(GetParam());
  for (uint32_t seed = 0; seed < 300; ++seed) {
    RunGraph(task, 3000 + seed, {.expensive = 10, .async = 20, .fail = 5, .no_op = 10});
  }
}

// Cancels the step at a random moment, from another thread: it must end with all results or with
// the cancellation, and the executor must then be usable again.
TEST_P(ExecutorRandomTest, Cancellations) {
  TestTask task(GetParam());
  const Kinds kinds = {.expensive = 10, .async = 20, .no_op = 10};
  int cancelled = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(StrCat("seed ", 4000 + seed));
    RandomGraph graph(4000 + seed, kinds), twin(4000 + seed, kinds);
    const auto executor = task.Make(graph.Take());
    const auto expected = twin.Interpret({1, 2});
    for (int run = 0; run < 4; ++run) {
      const auto one = Tensor::Scalar<int64_t>(1), two = Tensor::Scalar<int64_t>(2);
      TestStep step(graph.num_fetches(), {one, two});
      std::thread canceller([&] {
        Env::Real().SleepForNanos((seed * 7 + run * 13) % 80 * 1000);
        step.cancellation.Cancel(Aborted("enough"));
      });
      const Status status =
          RunStep(*executor, step.Args(), run % 2 == 1 ? RunMode::kRunAsync : RunMode::kRun);
      canceller.join();
      if (status.ok()) {
        CheckFetches(expected, step.fetches);
      } else {
        ++cancelled;
        EXPECT_EQ(status, Aborted("enough"));
      }
    }
    TestStep step(graph.num_fetches(), {Tensor::Scalar<int64_t>(1), Tensor::Scalar<int64_t>(2)});
    ASSERT_TRUE(executor->Run(step.Args()).ok());
    CheckFetches(expected, step.fetches);
  }
  EXPECT_GT(cancelled, 0);
}

TEST_P(ExecutorRandomTest, StepsSideBySide) {
  TestTask task(GetParam());
  const Kinds kinds = {.expensive = 10, .async = 15, .no_op = 10};
  for (uint32_t seed = 5000; seed < 5030; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    RandomGraph graph(seed, kinds), twin(seed, kinds);
    const auto executor = task.Make(graph.Take());
    std::vector<std::vector<std::optional<int64_t>>> expected;
    for (int t = 0; t < 3; ++t) expected.push_back(twin.Interpret({t, 100}));
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (int run = 0; run < 10; ++run) {
          TestStep step(graph.num_fetches(),
                        {Tensor::Scalar<int64_t>(t), Tensor::Scalar<int64_t>(100)});
          EXPECT_TRUE(RunStep(*executor, step.Args(),
                              (run + t) % 3 == 0 ? RunMode::kRunAsync : RunMode::kRun)
                          .ok());
          CheckFetches(expected[t], step.fetches);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

// Sets a deadline at a random moment: the step must end with all results, or with DeadlineExceeded.
TEST_P(ExecutorRandomTest, Deadlines) {
  TestTask task(GetParam());
  const Kinds kinds = {.expensive = 30, .async = 20};
  for (uint32_t seed = 6000; seed < 6100; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    RandomGraph graph(seed, kinds), twin(seed, kinds);
    const auto executor = task.Make(graph.Take());
    const auto expected = twin.Interpret({1, 2});
    for (int run = 0; run < 4; ++run) {
      TestStep step(graph.num_fetches(), {Tensor::Scalar<int64_t>(1), Tensor::Scalar<int64_t>(2)});
      step.deadline_ns = Env::Real().NowNanos() + (seed * 3 + run * 17) % 100 * 1000;
      const Status status =
          RunStep(*executor, step.Args(), run % 2 == 0 ? RunMode::kRunAsync : RunMode::kRun);
      if (status.ok()) {
        CheckFetches(expected, step.fetches);
      } else {
        EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
      }
    }
  }
}

}  // namespace
}  // namespace penstock
