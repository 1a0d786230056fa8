// SPDX-License-Identifier: Apache-2.0
//
// Measures nanoseconds per iteration of loops over lists of tensors. The time does not depend on
// the list's length if the loop changes its list in place.
#include <benchmark/benchmark.h>

#include "client/control_flow.h"
#include "client/program.h"
#include "client/session.h"
#include "core/base/check.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

// Measures a step that computes list = body(i, list) in a loop of state.range(0) iterations, and
// fetches the length of the final list.
void RunLoop(benchmark::State& state, Program& program, Output list,
             const std::function<Output(Output, Output)>& body) {
  const Output times =
      Constant(program, Tensor::Scalar<int32_t>(static_cast<int32_t>(state.range(0))));
  const Output end = While(
      program, {Constant(program, Tensor::Scalar<int32_t>(0)), list},
      [&](const Outputs& v) { return Less(v[0], times); },
      [&](const Outputs& v) {
        return Outputs{v[0] + 1, body(v[0], v[1])};
      })[1];
  const Output length = Call("TensorListLength", {end});
  auto session = Session::New(program, "");
  CHECK_OK(session.status());
  for (auto _ : state) CHECK_OK((*session)->Run({}, {length}, {}, {}).status());
  state.SetComplexityN(state.range(0));
  state.counters["ns/iteration"] = benchmark::Counter(
      static_cast<double>(state.range(0)) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

Output Scalar(Program& program) { return Constant(program, Tensor(DType::kInt32, {0})); }

void BM_SetItem(benchmark::State& state) {
  Program program;
  const Output size =
      Constant(program, Tensor::Scalar<int32_t>(static_cast<int32_t>(state.range(0))));
  const Output list =
      Call("TensorListReserve", {Scalar(program), size}, {{"element_dtype", DType::kInt32}});
  RunLoop(state, program, list, [](Output i, Output l) {
    return Call("TensorListSetItem", {l, i, i});
  });
}
BENCHMARK(BM_SetItem)->RangeMultiplier(10)->Range(100, 100'000)->UseRealTime()->Complexity();

void BM_PushBack(benchmark::State& state) {
  Program program;
  const Output unlimited = Constant(program, Tensor::Scalar<int32_t>(-1));
  const Output list =
      Call("EmptyTensorList", {Scalar(program), unlimited}, {{"element_dtype", DType::kInt32}});
  RunLoop(state, program, list, [](Output i, Output l) {
    return Call("TensorListPushBack", {l, i});
  });
}
BENCHMARK(BM_PushBack)->RangeMultiplier(10)->Range(100, 100'000)->UseRealTime()->Complexity();

}  // namespace
}  // namespace penstock::client
