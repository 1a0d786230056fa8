// SPDX-License-Identifier: Apache-2.0
//
// Measures how much time a session adds to a run of its executor, and the time of a step of two
// tasks.
#include "benchmark/benchmark.h"
#include "core/graph/builder.h"
#include "distributed/testing/test_cluster.h"

namespace penstock {
namespace {

constexpr char kPs[] = "/job:ps/task:0";
constexpr char kWorker[] = "/job:worker/task:0";

std::unique_ptr<SessionInterface> Local(const GraphBuilder& g) {
  CHECK_OK(g.status());
  auto session = NewLocalSession({.optimize = false});
  CHECK_OK(session.status());
  CHECK_OK((*session)->Extend(g.graph()));
  return *std::move(session);
}

void RunByName(benchmark::State& state, SessionInterface& session, const Feeds& feeds,
               const std::vector<std::string>& fetches, const std::vector<std::string>& targets) {
  std::vector<Tensor> outputs;
  for (int i = 0; i < 100; ++i) {
    CHECK_OK(session.Run({}, feeds, fetches, targets, &outputs, nullptr));
  }
  for (auto _ : state) CHECK_OK(session.Run({}, feeds, fetches, targets, &outputs, nullptr));
}

void BM_LocalNoOp(benchmark::State& state) {
  GraphBuilder g;
  CallIn(g, "NoOp", {});
  const auto session = Local(g);
  RunByName(state, *session, {}, {}, {"NoOp"});
}
BENCHMARK(BM_LocalNoOp);

void BM_LocalNoOpCallable(benchmark::State& state) {
  GraphBuilder g;
  CallIn(g, "NoOp", {});
  const auto session = Local(g);
  const auto callable = *session->MakeCallable({.targets = {"NoOp"}});
  std::vector<Tensor> outputs;
  for (auto _ : state) CHECK_OK(session->RunCallable(callable, {}, {}, &outputs, nullptr));
}
BENCHMARK(BM_LocalNoOpCallable);

// Runs a chain of additions to a fed scalar.
void BM_LocalChain(benchmark::State& state) {
  GraphBuilder g;
  const Output x =
      CallIn(g, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape()}});
  Output y = x;
  for (int i = 0; i < state.range(0); ++i) y = y + 1.0;
  const auto session = Local(g);
  RunByName(state, *session, {{x.name(), Tensor::Scalar(1.0f)}}, {y.name()}, {});
}
BENCHMARK(BM_LocalChain)->Arg(1)->Arg(100);

// Measures steps that send a variable from the ps to the worker. A node of the worker uses it; if
// `through_client`, the client fetches it instead. The argument is the variable's size in bytes.
void FetchFromPs(benchmark::State& state, bool through_client) {
  TestCluster cluster({{"ps", 1}, {"worker", 1}});
  GraphBuilder g;
  Output v, got;
  {
    const auto ps = g.DeviceScope(kPs);
    const int64_t elements = state.range(0) / 4;
    v = CallIn(g, "VariableV2", {},
               {{"dtype", DType::kFloat}, {"shape", PartialShape({elements})}});
    Call("Assign", {v, Constant(g, Tensor::Vector<float>(std::vector<float>(elements, 1)))});
  }
  {
    const auto worker = g.DeviceScope(kWorker);
    got = Call("Shape", {v});
  }
  auto session = cluster.NewSession({.optimize = false});
  CHECK_OK(g.status());
  CHECK_OK(session->Extend(g.graph()));
  std::vector<Tensor> none;
  CHECK_OK(session->Run({}, {}, {}, {"Assign"}, &none, nullptr));
  RunByName(state, *session, {}, {through_client ? v.name() : got.name()}, {});
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
void BM_FetchToWorker(benchmark::State& state) { FetchFromPs(state, false); }
BENCHMARK(BM_FetchToWorker)->Arg(4)->Arg(4 << 20)->Arg(64 << 20)->UseRealTime();
void BM_FetchToClient(benchmark::State& state) { FetchFromPs(state, true); }
BENCHMARK(BM_FetchToClient)->Arg(4)->Arg(4 << 20)->Arg(64 << 20)->UseRealTime();

}  // namespace
}  // namespace penstock
