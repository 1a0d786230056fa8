// SPDX-License-Identifier: Apache-2.0
#include "tools/benchmark/workloads.h"

#include <algorithm>
#include <map>

#include "client/embedding/dynamic_table.h"
#include "client/initializers.h"
#include "client/optimizers.h"
#include "core/op/gradient.h"

namespace penstock::benchmark {
namespace {

using client::Program;
using client::Variable;

// Generates the same numbers as random_edges() in workloads.py.
class RandomEdges {
 public:
  int Next() {
    state_ = (state_ * 1103515245 + 12345) % (int64_t{1} << 31);
    return static_cast<int>((state_ >> 16) % kRandomWidth);
  }

 private:
  int64_t state_ = 12345;
};

// Adds nodes to the executor's graph: each call adds one that depends on `inputs`.
class NodeMaker {
 public:
  NodeMaker(Program& program, bool noop) : program_(program), noop_(noop) {}
  Output operator()(const Outputs& inputs) {
    ++count_;
    if (!noop_) return Call("Add", {inputs.front(), inputs.back()});
    const auto scope = program_.ControlDependencies(inputs);
    return {&program_, program_.AddNode("NoOp", {}, {}, ""), 0};
  }
  int count() const { return count_; }

 private:
  Program& program_;
  const bool noop_;
  int count_ = 0;
};

Output Dense(Program& program, Output x, const std::string& suffix, int64_t in, int64_t out) {
  const Variable w(program, "w" + suffix, {in, out}, client::RandomNormal(0, 0.05));
  const Variable b(program, "b" + suffix, {out}, client::Zeros());
  return Call("BiasAdd", {MatMul(x, w), b});
}

Output Mlp(Program& program, Output x) {
  x = Call("Relu", {Dense(program, x, "0", kPixels, 512)});
  x = Call("Relu", {Dense(program, x, "1", 512, 512)});
  return Dense(program, x, "2", 512, 10);
}

Output ConvLayer(Program& program, Output x, const std::string& suffix, int64_t in, int64_t out) {
  const Variable w(program, "c" + suffix, {5, 5, in, out}, client::RandomNormal(0, 0.05));
  const Variable b(program, "d" + suffix, {out}, client::Zeros());
  const std::vector<int64_t> ones = {1, 1, 1, 1}, twos = {1, 2, 2, 1};
  x = Call("Conv2D", {x, w}, {{"strides", ones}, {"padding", "SAME"}});
  x = Call("Relu", {Call("BiasAdd", {x, b})});
  return Call("MaxPool", {x}, {{"ksize", twos}, {"strides", twos}, {"padding", "SAME"}});
}

Output Convnet(Program& program, Output x) {
  const auto shape = [&](const std::vector<int32_t>& dims) {
    return Constant(program, Tensor::Vector<int32_t>(dims));
  };
  x = Reshape(x, shape({-1, 28, 28, 1}));
  x = ConvLayer(program, x, "0", 1, 32);
  x = ConvLayer(program, x, "1", 32, 64);
  x = Reshape(x, shape({-1, 7 * 7 * 64}));
  x = Call("Relu", {Dense(program, x, "0", 7 * 7 * 64, 1024)});
  return Dense(program, x, "1", 1024, 10);
}

}  // namespace

StatusOr<int64_t> TransferBytes(const std::string& name) {
  static const std::map<std::string, int64_t>& sizes = *new std::map<std::string, int64_t>{
      {"1KB", 1 << 10}, {"4KB", 4 << 10},   {"64KB", 64 << 10},  {"1MB", 1 << 20},
      {"4MB", 4 << 20}, {"64MB", 64 << 20}, {"256MB", 256 << 20}};
  const auto it = sizes.find(name);
  if (it == sizes.end()) return InvalidArgument("no transfer size '", name, "'");
  return it->second;
}

int64_t AllReduceCount(int64_t bytes) {
  return std::clamp<int64_t>((int64_t{256} << 20) / bytes, 5, 1000);
}

StatusOr<ExecutorGraph> BuildExecutorGraph(Program& program, const std::string& shape,
                                           const std::string& kind) {
  if (kind != "add" && kind != "noop") return InvalidArgument("no executor node '", kind, "'");
  ExecutorGraph g;
  NodeMaker node(program, kind == "noop");
  Outputs start;
  if (kind == "add") {
    g.feeds = {CallIn(program, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", Shape()}})};
    start = {Identity(g.feeds[0])};
  }
  const Output first = node(start);
  Outputs last = {first};
  if (shape == "chain") {
    for (int i = 1; i < kChainNodes; ++i) last = {node(last)};
  } else if (shape == "wide") {
    last.clear();
    for (int i = 1; i < kWideNodes; ++i) last.push_back(node({first}));
  } else if (shape == "random") {
    RandomEdges edges;
    last = Outputs(kRandomWidth, first);
    for (int layer = 1; layer < kRandomDepth; ++layer) {
      Outputs next;
      for (int i = 0; i < kRandomWidth; ++i) {
        const int a = edges.Next(), b = edges.Next();
        next.push_back(node({last[a], last[b]}));
      }
      last = std::move(next);
    }
  } else {
    return InvalidArgument("no executor graph '", shape, "'");
  }
  g.nodes = node.count();
  g.target = program.Group(last, "target");
  RETURN_IF_ERROR(program.status());
  return g;
}

StatusOr<TrainingGraph> BuildTraining(Program& program, const std::string& model) {
  const auto fed = [&program](DType dtype, const Shape& shape) {
    return CallIn(program, "Placeholder", {}, {{"dtype", dtype}, {"shape", shape}});
  };
  return BuildTraining(program, model, fed(DType::kFloat, Shape({kBatch, kPixels})),
                       fed(DType::kInt32, Shape({kBatch})));
}

StatusOr<TrainingGraph> BuildTraining(Program& program, const std::string& model, Output images,
                                      Output labels) {
  if (model != "mlp" && model != "convnet") return InvalidArgument("no model '", model, "'");
  TrainingGraph g{.images = images, .labels = labels};
  const Output logits = model == "mlp" ? Mlp(program, g.images) : Convnet(program, g.images);
  const Output losses = Call("SparseSoftmaxCrossEntropyWithLogits", {logits, g.labels});
  const Output loss = Mean(losses, Constant(program, Tensor::Vector<int32_t>({0})));
  g.train = client::GradientDescent(0.01).Minimize(program, loss);
  g.init = program.Initialize(program.globals());
  RETURN_IF_ERROR(program.status());
  return g;
}

EmbeddingGraph BuildEmbedding(client::Program& program) {
  const auto ids = [&] {
    return CallIn(program, "Placeholder", {},
                  {{"dtype", DType::kInt64}, {"shape", PartialShape({-1})}});
  };
  EmbeddingGraph graph{.ids = ids(), .splits = ids()};
  const client::DynamicTable table(program, "table", kTableWidth,
                                   client::TableInitializer::Normal(0, 1, 1),
                                   client::TableMethod::Adagrad(0.01));
  const Output sums =
      client::EmbeddingLookupSparse(table, client::IdLists::FromRagged(graph.ids, graph.splits),
                                    {.combiner = client::Combiner::kSum});
  const Output loss = Mean(Square(sums), Constant(program, Tensor::Vector<int32_t>({0, 1})));
  client::GradientDescent none(0.01);  // there are no variables
  graph.train = client::Minimize(program, none, loss, {table});
  graph.init = program.Initialize(program.globals());
  return graph;
}

}  // namespace penstock::benchmark
