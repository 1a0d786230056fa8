// SPDX-License-Identifier: Apache-2.0
//
// Measures, by number of nodes, the time from building a large graph to the end of its first step:
// building, extending the session, preparing (compiling and registering). items_per_second is the
// number of nodes per second; it is the same for all sizes if the cost is linear.
#include "benchmark/benchmark.h"
#include "core/graph/builder.h"
#include "distributed/testing/test_cluster.h"

namespace penstock {
namespace {

constexpr int64_t kWidth = 100;

// Layers of kWidth scalar nodes; each node reads two nodes of the previous layer. Every second
// layer is on the parameter server if there is one.
struct LayeredGraph {
  GraphBuilder builder;
  Output fed, result;

  LayeredGraph(int64_t nodes, bool distributed) {
    fed = CallIn(builder, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape()}});
    std::vector<Output> layer(kWidth, fed);
    for (int64_t made = 1; made < nodes; made += kWidth) {
      const bool ps = distributed && made / kWidth % 2 == 1;
      const auto device = builder.DeviceScope(ps ? "/job:ps/task:0" : "");
      std::vector<Output> next;
      for (int64_t i = 0; i < kWidth; ++i) {
        const char* const op = i % 3 == 0 ? "AddV2" : i % 3 == 1 ? "Mul" : "Sub";
        next.push_back(Call(op, {layer[i], layer[i * 7 % kWidth]}));
      }
      layer = std::move(next);
    }
    result = layer[0];
    CHECK_OK(builder.status());
  }
};

void RunOnce(const LayeredGraph& graph, SessionInterface& session) {
  CHECK_OK(session.Extend(graph.builder.graph()));
  std::vector<Tensor> out;
  std::vector<std::string> targets;
  for (const Node* node : graph.builder.graph().nodes()) {
    if (node->out_edges().empty()) targets.push_back(node->name());
  }
  CHECK_OK(session.Run({}, {{graph.fed.name(), Tensor::Scalar(1.0f)}}, {graph.result.name()},
                       targets, &out, nullptr));
}

void BM_Build(benchmark::State& state) {
  for (auto _ : state) {
    const LayeredGraph graph(state.range(0), false);
    benchmark::DoNotOptimize(graph.result);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void BM_LocalFirstStep(benchmark::State& state) {
  const LayeredGraph graph(state.range(0), false);
  for (auto _ : state) {
    auto session = NewLocalSession({});
    CHECK_OK(session.status());
    RunOnce(graph, **session);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void BM_ClusterFirstStep(benchmark::State& state) {
  TestCluster cluster({{"ps", 1}, {"worker", 1}});
  const LayeredGraph graph(state.range(0), true);
  for (auto _ : state) {
    const auto session = cluster.NewSession();
    RunOnce(graph, *session);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

#define LARGE(name) \
  BENCHMARK(name)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond)
LARGE(BM_Build);
LARGE(BM_LocalFirstStep);
LARGE(BM_ClusterFirstStep);

}  // namespace
}  // namespace penstock
