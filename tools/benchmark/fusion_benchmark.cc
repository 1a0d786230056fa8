// SPDX-License-Identifier: Apache-2.0
//
// Measures what the pass "fuse" gains: steps with (/1) and without (/0) the pass. Compare the two
// only within one run with --benchmark_enable_random_interleaving=true --benchmark_repetitions=10.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "client/program.h"
#include "client/session.h"
#include "core/op/gradient.h"
#include "tools/benchmark/workloads.h"

namespace penstock::benchmark {
namespace {

using client::Program;

std::unique_ptr<client::Session> MakeSession(const Program& program, bool fuse) {
  SessionOptions options;
  if (!fuse) options.disabled_passes = {"fuse"};
  auto session = client::Session::New(program, "", options);
  CHECK_OK(session.status());
  return *std::move(session);
}

void BM_Training(::benchmark::State& state, const std::string& model) {
  Program program;
  const auto graph = BuildTraining(program, model);
  CHECK_OK(graph.status());
  const auto session = MakeSession(program, state.range(0) != 0);
  CHECK_OK(session->Execute(graph->init));
  Tensor images(DType::kFloat, Shape({kBatch, kPixels}));
  for (int64_t i = 0; i < images.num_elements(); ++i) {
    images.mutable_data<float>()[i] = static_cast<float>(i % 251) / 251;
  }
  Tensor labels(graph->labels.dtype(), Shape({kBatch}));
  std::memset(labels.mutable_raw_data(), 0, labels.bytes());
  const auto step = session->MakeCallable({graph->images, graph->labels}, {}, {graph->train});
  CHECK_OK(step.status());
  for (auto _ : state) CHECK_OK((*step)({images, labels}).status());
}
BENCHMARK_CAPTURE(BM_Training, mlp, "mlp")->Arg(0)->Arg(1)->UseRealTime();
BENCHMARK_CAPTURE(BM_Training, convnet, "convnet")->Arg(0)->Arg(1)->UseRealTime();

// The elementwise graphs: `build` makes the output from two tensors of range(1) floats.
template <class Build>
void RunElementwise(::benchmark::State& state, Build build) {
  Program program;
  const Shape shape({state.range(1) / 64, 64});
  const auto fed = [&] {
    return CallIn(program, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", shape}});
  };
  const Output x = fed(), y = fed();
  // The largest element is fetched, so that the step does not copy the result to the client.
  const Output result =
      Call("Max", {build(x, y), Constant(program, Tensor::Vector<int32_t>({0, 1}))});
  const auto session = MakeSession(program, state.range(0) != 0);
  Tensor value(DType::kFloat, shape);
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    value.mutable_data<float>()[i] = static_cast<float>(i % 1000) / 500 - 1;
  }
  const auto step = session->MakeCallable({x, y}, {result});
  CHECK_OK(step.status());
  for (auto _ : state) CHECK_OK((*step)({value, value}).status());
}

void BM_Gelu(::benchmark::State& state) {
  RunElementwise(state, [](Output x, Output) {
    return 0.5 * x * (1.0 + Tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
  });
}
// The terms of Adam's update of a variable, from the gradient y and the moments.
void BM_Adam(::benchmark::State& state) {
  RunElementwise(state, [](Output x, Output y) {
    const Output m = 0.9 * x + 0.1 * y, v = 0.999 * x * x + 0.001 * Square(y);
    return x - 0.01 * m / (Sqrt(v) + 1e-8);
  });
}
void BM_BiasRelu(::benchmark::State& state) {
  RunElementwise(state, [](Output x, Output) {
    std::vector<float> bias(64, 0.25f);
    return Call("Relu", {Call("BiasAdd", {-x, Constant(*x.sink, Tensor::Vector<float>(bias))})});
  });
}
// Two cheap nodes.
void BM_Pair(::benchmark::State& state) {
  RunElementwise(state, [](Output x, Output y) { return Call("Relu", {x + y}); });
}

void Sizes(::benchmark::internal::Benchmark* benchmark) {
  for (const int64_t size : {64, 1024, 16 << 10, 128 << 10, 1 << 20, 8 << 20}) {
    benchmark->Args({0, size})->Args({1, size});
  }
  benchmark->UseRealTime();
}
BENCHMARK(BM_Gelu)->Apply(Sizes);
BENCHMARK(BM_Adam)->Apply(Sizes);
BENCHMARK(BM_BiasRelu)->Apply(Sizes);
BENCHMARK(BM_Pair)->Apply(Sizes);

}  // namespace
}  // namespace penstock::benchmark
