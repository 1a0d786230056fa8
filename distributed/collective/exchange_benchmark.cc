// SPDX-License-Identifier: Apache-2.0
//
// Measures all-reduce between tasks of this process, without sessions: the costs of Exchange
// and transport. tools/bench --only=all_reduce compares processes that use sessions with
// PyTorch's gloo.
#include <future>
#include <memory>
#include <vector>

#include "benchmark/benchmark.h"
#include "distributed/collective/testing/exchange_task.h"

namespace penstock::collective {
namespace {

void BM_AllReduce(benchmark::State& state, const char* protocol) {
  const int64_t bytes = state.range(0);
  const int count = static_cast<int>(state.range(1));
  std::vector<std::unique_ptr<ExchangeTask>> tasks;
  const auto ids = [&](const std::string&) -> StatusOr<std::vector<TaskId>> {
    std::vector<TaskId> all;
    for (const auto& task : tasks) all.push_back(task->id());
    return all;
  };
  for (int i = 0; i < count; ++i) {
    tasks.push_back(std::make_unique<ExchangeTask>(protocol, i, ids));
  }
  Tensor input(DType::kFloat, Shape({bytes / 4}));
  for (float& x : input.mutable_flat<float>()) x = 1;
  int64_t step = 0;
  for (auto _ : state) {
    ++step;
    std::vector<std::future<Status>> ended;
    for (int i = 0; i < count; ++i) {
      auto promise = std::make_shared<std::promise<Status>>();
      ended.push_back(promise->get_future());
      tasks[i]->exchange().Collect(
          "s", step,
          {.group_key = 1,
           .group_size = count,
           .instance_key = 1,
           .device = ExchangeTask::Device(i, 0),
           .input = input,
           .dtype = input.dtype(),
           .shape = input.shape()},
          [promise](const StatusOr<Tensor>& sum) { promise->set_value(sum.status()); });
    }
    for (auto& each : ended) CHECK_OK(each.get());
  }
  state.SetBytesProcessed(state.iterations() * bytes);
  for (auto& task : tasks) task->Stop();
}

void Sizes(benchmark::internal::Benchmark* b) {
  for (const int64_t tasks : {2, 4}) {
    for (const int64_t bytes : {64 << 10, 1 << 20, 64 << 20}) b->Args({bytes, tasks});
  }
  b->ArgNames({"bytes", "tasks"})->UseRealTime()->Unit(benchmark::kMicrosecond);
}
BENCHMARK_CAPTURE(BM_AllReduce, shm, "shm")->Apply(Sizes);
BENCHMARK_CAPTURE(BM_AllReduce, grpc, "grpc")->Apply(Sizes);

}  // namespace
}  // namespace penstock::collective
