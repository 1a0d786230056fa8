// SPDX-License-Identifier: Apache-2.0
//
// Measures pulls and pushes of a table with 1 million rows of 64 floats, on one core: rows per
// second. A table with a spill directory has 1 in 16 rows in memory.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "core/op/testing/op_runner.h"

namespace penstock {
namespace {

constexpr int64_t kRows = 1 << 20, kWidth = 64, kBatch = 4096;

Tensor Matrix(int64_t rows) {
  Tensor tensor(DType::kFloat, {rows, kWidth});
  std::fill_n(tensor.mutable_data<float>(), tensor.num_elements(), 0.01f);
  return tensor;
}

// Returns the key of a number: a hash, as clients' keys often are.
int64_t Key(int64_t number) { return static_cast<int64_t>(number * 0x9E3779B97F4A7C15); }

// Makes batches of distinct keys, as a client sends them: uniformly distributed, or by Zipf's law
// with exponent 1.
std::vector<Tensor> Batches(bool zipf) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> unit(0, 1);
  std::vector<Tensor> batches;
  for (int i = 0; i < 64; ++i) {
    std::vector<int64_t> keys;
    while (std::ssize(keys) < kBatch) {
      for (int64_t k = std::ssize(keys); k < kBatch; ++k) {
        // The density of Zipf's law is 1/x, so its integral is a logarithm.
        const auto number = zipf ? static_cast<int64_t>(std::pow(double{kRows}, unit(random))) - 1
                                 : static_cast<int64_t>(random() % kRows);
        keys.push_back(Key(number));
      }
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    }
    std::shuffle(keys.begin(), keys.end(), random);
    batches.push_back(Tensor::Vector(keys));
  }
  return batches;
}

std::string TemporaryDirectory() {
  const char* const directory = std::getenv("TMPDIR");
  return directory != nullptr ? directory : "/tmp";
}

// A table with 1 million rows.
class Table {
 public:
  Table(const std::vector<float>& slots, bool limited, bool spilling = false) {
    OpRunner make("DynamicTable", store_);
    make.Attr("width", kWidth).Attr("slots", slots).Attr("shared_name", "t");
    if (limited) make.Attr("max_rows", 2 * kRows);
    if (spilling) make.Attr("max_rows", kRows / 16).Attr("spill_directory", TemporaryDirectory());
    handle_ = *make.Run1();
    const Tensor grad = Matrix(kBatch);
    const std::string method = slots.empty() ? "GradientDescent" : "Adagrad";
    for (int64_t row = 0; row < kRows; row += kBatch) {
      Tensor keys(DType::kInt64, {kBatch});
      for (int64_t i = 0; i < kBatch; ++i) keys.mutable_data<int64_t>()[i] = Key(row + i);
      CHECK_OK(Push(method, keys, grad));
    }
  }
  Status Push(const std::string& method, const Tensor& keys, const Tensor& grad) {
    return OpRunner("DynamicTableApply" + method, store_)
        .In(handle_)
        .In(keys)
        .In(grad)
        .In(Tensor::Scalar<int64_t>(1))
        .In(Tensor::Scalar(0.01f))
        .Run()
        .status();
  }
  Status Pull(const Tensor& keys) {
    return OpRunner("DynamicTablePull", store_).In(handle_).In(keys).Run().status();
  }

 private:
  const std::shared_ptr<ResourceStore> store_ = std::make_shared<ResourceStore>();
  Tensor handle_;
};

void CountRows(benchmark::State& state) { state.SetItemsProcessed(state.iterations() * kBatch); }

// Measures pulls. The benchmark's argument is 1 if the ids follow Zipf's law, else 0.
void Pull(benchmark::State& state, bool spilling) {
  Table table({0.1f}, false, spilling);
  const auto batches = Batches(state.range(0) != 0);
  size_t i = 0;
  for (auto _ : state) CHECK_OK(table.Pull(batches[i++ % batches.size()]));
  CountRows(state);
}
void BM_Pull(benchmark::State& state) { Pull(state, false); }
void BM_PullSpilled(benchmark::State& state) { Pull(state, true); }
BENCHMARK(BM_PullSpilled)->ArgName("zipf")->Arg(0)->Arg(1);
BENCHMARK(BM_Pull)->ArgName("zipf")->Arg(0)->Arg(1);

void Push(benchmark::State& state, const std::string& method, const std::vector<float>& slots,
          bool limited, bool spilling = false) {
  Table table(slots, limited, spilling);
  const auto batches = Batches(state.range(0) != 0);
  const Tensor grad = Matrix(kBatch);
  size_t i = 0;
  for (auto _ : state) CHECK_OK(table.Push(method, batches[i++ % batches.size()], grad));
  CountRows(state);
}
void BM_PushGradientDescent(benchmark::State& state) { Push(state, "GradientDescent", {}, false); }
void BM_PushAdagrad(benchmark::State& state) { Push(state, "Adagrad", {0.1f}, false); }
// The table of BM_PushAdagradLimited has a limit of rows, so it keeps the order of updates.
void BM_PushAdagradLimited(benchmark::State& state) { Push(state, "Adagrad", {0.1f}, true); }
void BM_PushAdagradSpilled(benchmark::State& state) { Push(state, "Adagrad", {0.1f}, false, true); }
BENCHMARK(BM_PushAdagradSpilled)->ArgName("zipf")->Arg(0)->Arg(1);
BENCHMARK(BM_PushGradientDescent)->ArgName("zipf")->Arg(0)->Arg(1);
BENCHMARK(BM_PushAdagrad)->ArgName("zipf")->Arg(0)->Arg(1);
BENCHMARK(BM_PushAdagradLimited)->ArgName("zipf")->Arg(0)->Arg(1);

}  // namespace
}  // namespace penstock
