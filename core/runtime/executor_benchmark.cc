// SPDX-License-Identifier: Apache-2.0
//
// Measures the executor's overhead: nanoseconds per node and per step. Graphs: a chain, a star, and
// the random graphs of (width, depth) with which executors are usually compared.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "core/base/check.h"
#include "core/runtime/testing/test_flow.h"
#include "core/runtime/testing/test_ops.h"

namespace penstock {
namespace {

// Adds a node after the nodes `before`: AddNoOp with control edges, the others with edges that
// carry scalars.
using AddFn = Node* (*)(TestGraph&, const std::vector<Node*>& before);

Node* AddNoOp(TestGraph& g, const std::vector<Node*>& before) {
  return g.Add("NoOp", {}, {}, before);
}
Node* AddScalar(TestGraph& g, const std::vector<Node*>& before) {
  return g.AddSum("TestSum", before);
}
template <int kMicros>
Node* AddSpin(TestGraph& g, const std::vector<Node*>& before) {
  return g.AddSum("TestSpin", before, {{"micros", kMicros}});
}

Graph Chain(AddFn add, int nodes) {
  TestGraph g;
  Node* last = add(g, {});
  for (int i = 1; i < nodes; ++i) last = add(g, {last});
  return g.Take();
}

Graph Wide(AddFn add, int nodes) {
  TestGraph g;
  Node* const first = add(g, {});
  std::vector<Node*> middle;
  for (int i = 2; i < nodes; ++i) middle.push_back(add(g, {first}));
  add(g, middle);
  return g.Take();
}

// Makes a random graph. Repeats `depth` times: joins some of the nodes without consumers in one
// node, and adds up to `width` new nodes that consume it.
Graph Random(AddFn add, int width, int depth) {
  std::mt19937 random(7);
  const auto up_to = [&random](size_t n) { return 1 + random() % n; };
  TestGraph g;
  std::vector<Node*> ends;
  for (size_t n = up_to(width); n > 0; --n) ends.push_back(add(g, {}));
  for (int i = 0; i < depth; ++i) {
    std::shuffle(ends.begin(), ends.end(), random);
    std::vector<Node*> joined(ends.end() - up_to(ends.size()), ends.end());
    ends.resize(ends.size() - joined.size());
    Node* const join = add(g, joined);
    for (size_t n = up_to(width); n > 0; --n) ends.push_back(add(g, {join}));
  }
  return g.Take();
}

void Run(benchmark::State& state, Graph graph, int num_threads) {
  TestTask task(num_threads);
  const int nodes = graph.num_nodes();
  const auto executor = task.Make(std::move(graph));
  TestStep step;
  for (auto _ : state) CHECK_OK(executor->Run(step.Args()));
  state.counters["per_node"] =
      benchmark::Counter(static_cast<double>(nodes), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

void BM_Chain(benchmark::State& state, AddFn add, int threads) {
  Run(state, Chain(add, static_cast<int>(state.range(0))), threads);
}
void BM_Wide(benchmark::State& state, AddFn add, int threads) {
  Run(state, Wide(add, static_cast<int>(state.range(0))), threads);
}
void BM_Random(benchmark::State& state, AddFn add, int threads) {
  const auto width = static_cast<int>(state.range(0)), depth = static_cast<int>(state.range(1));
  Run(state, Random(add, width, depth), threads);
}
BENCHMARK_CAPTURE(BM_Chain, NoOp, AddNoOp, 1)->Arg(1)->Arg(100)->Arg(10'000);
BENCHMARK_CAPTURE(BM_Wide, NoOp, AddNoOp, 1)->Arg(10'000);
BENCHMARK_CAPTURE(BM_Random, NoOp, AddNoOp, 1)
    ->Args({16, 1024})
    ->Args({32, 8192})
    ->Args({1024, 16})
    ->Args({8192, 32})
    ->Args({1024, 1024});
BENCHMARK_CAPTURE(BM_Chain, Scalar, AddScalar, 1)->Arg(1)->Arg(100)->Arg(10'000);
BENCHMARK_CAPTURE(BM_Wide, Scalar, AddScalar, 1)->Arg(10'000);
BENCHMARK_CAPTURE(BM_Random, Scalar, AddScalar, 1)->Args({16, 1024})->Args({1024, 16});

// Two threads must not make cheap nodes slower, and must make expensive ones faster.
BENCHMARK_CAPTURE(BM_Random, NoOp2Threads, AddNoOp, 2)->Args({16, 1024})->UseRealTime();
BENCHMARK_CAPTURE(BM_Random, Scalar2Threads, AddScalar, 2)->Args({16, 1024})->UseRealTime();
BENCHMARK_CAPTURE(BM_Wide, Spin5us, AddSpin<5>, 1)->Arg(400)->UseRealTime();
BENCHMARK_CAPTURE(BM_Wide, Spin5us2Threads, AddSpin<5>, 2)->Arg(400)->UseRealTime();
BENCHMARK_CAPTURE(BM_Wide, Spin20us, AddSpin<20>, 1)->Arg(400)->UseRealTime();
BENCHMARK_CAPTURE(BM_Wide, Spin20us2Threads, AddSpin<20>, 2)->Arg(400)->UseRealTime();
BENCHMARK_CAPTURE(BM_Random, Spin20us, AddSpin<20>, 1)->Args({16, 64})->UseRealTime();
BENCHMARK_CAPTURE(BM_Random, Spin20us2Threads, AddSpin<20>, 2)->Args({16, 64})->UseRealTime();

// A step with one scalar feed and one fetch.
void BM_FeedFetch(benchmark::State& state) {
  TestTask task(2);
  TestGraph g;
  g.Fetch(g.AddSum("TestSum", {g.Feed(0)}), 0);
  const auto executor = task.Make(g.Take());
  TestStep step(1, {Tensor::Scalar<int64_t>(1)});
  for (auto _ : state) CHECK_OK(executor->Run(step.Args()));
}
BENCHMARK(BM_FeedFetch);

// One _Send and one _Recv through the rendezvous, on one thread.
void BM_SendRecv(benchmark::State& state) {
  TestTask task(2);
  TestGraph g;
  Attrs key = {{"tensor_name", "edge_1_x:0"},
               {"send_device", task.device->name()},
               {"send_device_incarnation", 1},
               {"recv_device", task.device->name()}};
  Attrs send = key, recv = key;
  send["T"] = DType::kInt64;
  recv["tensor_type"] = DType::kInt64;
  Node* const sent = g.Add("_Send", {g.AddSum("TestSum", {})}, send);
  g.AddSum("TestSum", {g.Add("_Recv", {}, recv, {sent})});
  const auto executor = task.Make(g.Take());
  for (auto _ : state) {
    TestStep step;
    CHECK_OK(executor->Run(step.Args()));
  }
}
BENCHMARK(BM_SendRecv);

// The cost of an iteration: the same sums in a loop and unrolled. `ops` sums of scalars in each of
// 100 iterations; both also have the counter and the condition.
constexpr int kIterations = 100;

FlowBuilder::Values Sums(FlowBuilder& b, FlowBuilder::Values v, int64_t ops) {
  for (int64_t i = 0; i < ops; ++i) {
    v[1] = b.Sum("TestSum", {v[1], v[0]});
  }
  return {v[1]};
}

void RunFlow(benchmark::State& state, FlowBuilder& b, Endpoint result, bool shared) {
  TestTask task(1);
  b.Fetch(result, 0);
  const auto executor = task.Make(b.Take());
  for (auto _ : state) {
    TestStep step(1, {Tensor::Scalar<int64_t>(kIterations)});
    if (!shared) {
      CHECK_OK(executor->Run(step.Args()));
      continue;
    }
    std::atomic<bool> ended{false};
    executor->RunAsync(step.Args(), Done([&](const Status& status) {
                         CHECK_OK(status);
                         ended = true;
                       }));
    while (!ended) {
    }
  }
  state.counters["per_iteration"] = benchmark::Counter(
      kIterations, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void BM_Loop(benchmark::State& state, bool shared) {
  FlowBuilder b;
  const Endpoint limit = b.Feed(0);
  const auto results =
      b.For({"loop"}, limit, {b.Sum("TestSum", {})},
            [&](const FlowBuilder::Values& v) { return Sums(b, v, state.range(0)); });
  RunFlow(state, b, results[0], shared);
}

void BM_Unrolled(benchmark::State& state, bool shared) {
  FlowBuilder b;
  const Endpoint limit = b.Feed(0);
  Endpoint i = b.Sum("TestSum", {}), sum = b.Sum("TestSum", {});
  for (int n = 0; n < kIterations; ++n) {
    b.Call("TestLess", {i, limit});
    sum = Sums(b, {i, sum}, state.range(0))[0];
    i = b.Sum("TestSum", {i}, {{"plus", 1}});
  }
  RunFlow(state, b, sum, shared);
}
BENCHMARK_CAPTURE(BM_Unrolled, Alone, false)->Arg(1)->Arg(4)->Arg(16);
BENCHMARK_CAPTURE(BM_Loop, Alone, false)->Arg(1)->Arg(4)->Arg(16);
BENCHMARK_CAPTURE(BM_Unrolled, Shared, true)->Arg(1)->Arg(4)->Arg(16)->UseRealTime();
BENCHMARK_CAPTURE(BM_Loop, Shared, true)->Arg(1)->Arg(4)->Arg(16)->UseRealTime();

}  // namespace
}  // namespace penstock
