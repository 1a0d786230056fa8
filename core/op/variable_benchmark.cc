// SPDX-License-Identifier: Apache-2.0
//
// Measures one assignment and one update of small variables: the cost of the lock, the version and
// the check for a StateLog.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "core/op/resource.h"
#include "core/op/variable.h"

namespace penstock {
namespace {

// Makes `count` variables of 16 floats in `store`, all assigned.
std::vector<std::shared_ptr<Variable>> MakeVariables(ResourceStore& store, int count) {
  std::vector<std::shared_ptr<Variable>> variables;
  for (int i = 0; i < count; ++i) {
    const auto make = []() -> StatusOr<std::shared_ptr<Resource>> {
      return std::make_shared<Variable>("v", DType::kFloat, PartialShape({16}));
    };
    const auto made = store.LookupOrCreate("", StrCat("v", i), "Variable", make);
    CHECK_OK(made.status());
    variables.push_back(std::static_pointer_cast<Variable>(*made));
    CHECK_OK(variables.back()->Assign(Tensor::Vector(std::vector<float>(16, 1)), true, {}));
  }
  return variables;
}

void BM_Assign(benchmark::State& state) {
  ResourceStore store;
  const auto variables = MakeVariables(store, 1);
  const Tensor value = Tensor::Vector(std::vector<float>(16, 1));
  for (auto _ : state) CHECK_OK(variables[0]->Assign(value, true, {.step_id = 1}));
}
BENCHMARK(BM_Assign);

// Updates a variable and its slots together, like an optimizer.
void BM_Update(benchmark::State& state) {
  ResourceStore store;
  const auto variables = MakeVariables(store, static_cast<int>(state.range(0)));
  std::vector<Variable*> pointers;
  for (const auto& variable : variables) pointers.push_back(variable.get());
  for (auto _ : state) {
    CHECK_OK(Variable::Update(pointers, {.step_id = 1}, [](absl::Span<Tensor* const> values) {
      for (Tensor* value : values) value->mutable_data<float>()[0] += 1;
      return OkStatus();
    }));
  }
}
BENCHMARK(BM_Update)->Arg(1)->Arg(3);

}  // namespace
}  // namespace penstock
