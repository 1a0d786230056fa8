// SPDX-License-Identifier: Apache-2.0
//
// Measures the cost per node of importing and validating a GraphDef, and how it grows with the
// graph. The goal is at most 3 us per node, and at 100k nodes at most 1.3 times the cost at 10k.
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "core/graph/builder.h"
#include "core/graph/graph_proto.h"
#include "core/graph/testing/test_ops.h"
#include "core/op/gradient.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

// Layers of 16 nodes; each node reads two of the previous layer, as in real graphs.
tensorflow::GraphDef Layers(int num_nodes) {
  tensorflow::GraphDef def;
  for (int i = 0; i < num_nodes; ++i) {
    tensorflow::NodeDef* node = def.add_node();
    node->set_name(StrCat("model/layer_", i / 16, "/node_", i));
    if (i < 16) {
      node->set_op("Placeholder");
      (*node->mutable_attr())["dtype"].set_type(tensorflow::DT_FLOAT);
      continue;
    }
    node->set_op("AddV2");
    node->set_device("/job:worker/task:0");
    (*node->mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
    for (const int source : {i - 16, i - i % 16 - 1}) {
      node->add_input(StrCat("model/layer_", source / 16, "/node_", source));
    }
  }
  return def;
}

void BM_Import(benchmark::State& state) {
  const tensorflow::GraphDef def = Layers(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    auto graph = std::make_unique<Graph>(TestOps());
    CHECK_OK(ImportGraph(def, graph.get()));
    CHECK_OK(graph->Validate());
    state.PauseTiming();
    graph.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Import)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

template <class Fn>
void RunOnLayers(benchmark::State& state, Fn fn) {
  Graph graph(TestOps());
  CHECK_OK(ImportGraph(Layers(static_cast<int>(state.range(0))), &graph));
  for (auto _ : state) fn(graph);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
void BM_Validate(benchmark::State& state) {
  RunOnLayers(state, [](const Graph& graph) { CHECK_OK(graph.Validate()); });
}
void BM_Clone(benchmark::State& state) {
  RunOnLayers(state,
              [](const Graph& graph) { benchmark::DoNotOptimize(graph.Clone().num_nodes()); });
}
void BM_InferShapes(benchmark::State& state) {
  RunOnLayers(state, [](const Graph& graph) { CHECK_OK(InferShapes(graph).status()); });
}
void BM_Export(benchmark::State& state) {
  RunOnLayers(state, [](const Graph& graph) {
    tensorflow::GraphDef def;
    ExportGraph(graph, &def);
    benchmark::DoNotOptimize(def.node_size());
  });
}
BENCHMARK(BM_Validate)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Clone)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_InferShapes)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Export)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

void BM_Build(benchmark::State& state) {
  for (auto _ : state) {
    GraphBuilder builder(TestOps());
    const auto scope = builder.NameScope("model");
    const auto device = builder.DeviceScope("/job:worker/task:0");
    const Output x = {&builder, builder.AddNode("Placeholder", {}, {{"dtype", DType::kFloat}}, ""),
                      0};
    Output y = x;
    for (int i = 1; i < state.range(0); ++i) y = y + x;
    CHECK_OK(builder.status());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Build)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

// The worst case for naive bookkeeping: one node with all the edges, added and removed.
void BM_Star(benchmark::State& state) {
  for (auto _ : state) {
    Graph graph(TestOps());
    Node* hub = *graph.AddNode({.name = "hub", .op = "NoOp"});
    Node* end = *graph.AddNode({.name = "end", .op = "NoOp"});
    std::vector<Node*> rays;
    for (int i = 0; i < state.range(0); ++i) {
      rays.push_back(
          *graph.AddNode({.name = graph.UniqueName("ray"), .op = "NoOp", .control_inputs = {hub}}));
      graph.AddControlEdge(rays.back(), end);
    }
    for (Node* ray : rays) graph.RemoveNode(ray);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Star)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace penstock
