// SPDX-License-Identifier: Apache-2.0
//
// Measures how long steps take (median, 99th percentile, longest), with and without a background
// save of 1 GB of variables. If each step changes only some rows of a table, the save must not copy
// the whole table in one step. If each step changes all of a matrix, the first step after the
// snapshot writes the matrix to new memory: Matrices only adds to matrices, Network also computes
// their gradients for a batch, as a training does.
//
//   bazel-bin/client/background_save_benchmark      (writes checkpoints of 1 GB to $TMPDIR or /tmp)
//
// With PENSTOCK_TARGET=grpc://HOST:PORT, a worker's address, the variables are on /job:ps/task:0.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "client/background_save.h"
#include "client/device_setter.h"
#include "client/optimizers.h"
#include "client/program.h"
#include "client/saver.h"
#include "client/session.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

constexpr int64_t kLength = 256, kRows = 1 << 20;  // 1 GiB
constexpr int kMatrices = 16, kUpdatedRows = 1024;

// Adds 1 to some rows of one table.
struct Table {
  explicit Table(Program& program) : table(program, "table", {kRows, kLength}, Zeros()) {
    const Output rows =
        Call("RandomUniformInt", {Constant(program, Tensor::Vector<int32_t>({kUpdatedRows})),
                                  Constant(program, Tensor::Scalar<int32_t>(0)),
                                  Constant(program, Tensor::Scalar<int32_t>(kRows))});
    const Output ones = Constant(
        program,
        Tensor::Of<float>({kUpdatedRows, kLength}, std::vector<float>(kUpdatedRows * kLength, 1)));
    step = Call("ResourceScatterAdd", {table.handle(), rows, ones});
  }
  Variable table;
  Output step;
};

// Adds to all elements of several matrices, as an optimizer's dense update does.
struct Matrices {
  explicit Matrices(Program& program) {
    Outputs updates;
    for (int i = 0; i < kMatrices; ++i) {
      const Shape shape({kRows / kMatrices, kLength});
      const Variable matrix(program, StrCat("matrix", i), shape, Zeros());
      updates.push_back(matrix.AssignAdd(OnesLike(matrix)));
    }
    step = program.Group(updates, "step");
  }
  Output step;
};

// Trains layers of matrices on a batch.
struct Network {
  static constexpr int kLayers = 4, kWidth = 8192, kBatch = 64;
  explicit Network(Program& program) {
    Output x = Constant(
        program, Tensor::Of<float>({kBatch, kWidth}, std::vector<float>(kBatch * kWidth, 0.1F)));
    for (int i = 0; i < kLayers; ++i) {
      const Variable layer(program, StrCat("layer", i), {kWidth, kWidth}, Zeros());
      x = Tanh(MatMul(x, layer));
    }
    const Output both = Constant(program, Tensor::Vector<int32_t>({0, 1}));
    step = optimizer.Minimize(program, Mean(Square(x - 0.5), both));
  }
  GradientDescent optimizer{0.1};
  Output step;
};

std::string EnvironmentOr(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

double Seconds(Env& env) { return static_cast<double>(env.NowNanos()) * 1e-9; }

template <class Model>
void Steps(benchmark::State& state) {
  const bool saves = state.range(0) != 0;
  const std::string target = EnvironmentOr("PENSTOCK_TARGET", "");
  Program program;
  const auto scope = program.DeviceFunctionScope(ReplicaDeviceSetter(
      {.ps_tasks = target.empty() ? 0 : 1, .worker_device = target.empty() ? "" : "/job:worker"}));
  Model model(program);
  Saver saver(program, {}, {.keep = 1, .background = true});
  const auto session = *Session::New(program, target);
  CHECK_OK(session->Execute(program.Initialize(program.variables())));
  const Callable step = *session->MakeCallable({}, {}, {model.step});
  Env& env = Env::Real();
  const std::string directory = EnvironmentOr("TMPDIR", "/tmp") + "/save_benchmark";
  const auto take_snapshot = [&](const std::string& name,
                                 const RunOptions& run) -> StatusOr<int64_t> {
    RETURN_IF_ERROR(saver.TakeSnapshot(*session, name, run));
    return 0;
  };
  for (int i = 0; i < 5; ++i) CHECK_OK(step({}).status());
  std::vector<double> times;
  double saved_after = 0;
  for (auto _ : state) {
    const double begin = Seconds(env);
    std::unique_ptr<BackgroundSave> save;
    if (saves) {
      save = std::make_unique<BackgroundSave>(saver, *session, directory + "/model.ckpt",
                                              take_snapshot, env, Scheduler::Real());
    }
    while (saves ? !save->Advance() : Seconds(env) - begin < 5) {
      const double step_begin = Seconds(env);
      CHECK_OK(step({}).status());
      if (save != nullptr) save->Advance();  // the snapshot's time counts as part of the step
      times.push_back(Seconds(env) - step_begin);
    }
    if (saves) CHECK_OK(save->Wait().status());
    saved_after = Seconds(env) - begin;
  }
  std::sort(times.begin(), times.end());
  state.counters["median_ms"] = times[times.size() / 2] * 1e3;
  state.counters["p99_ms"] = times[times.size() * 99 / 100] * 1e3;
  state.counters["longest_ms"] = times.back() * 1e3;
  state.counters["longest/median"] = times.back() / times[times.size() / 2];
  state.counters["save_s"] = saved_after;
}

BENCHMARK_TEMPLATE(Steps, Table)->Arg(0)->Arg(1)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK_TEMPLATE(Steps, Matrices)->Arg(0)->Arg(1)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK_TEMPLATE(Steps, Network)->Arg(0)->Arg(1)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace penstock::client
