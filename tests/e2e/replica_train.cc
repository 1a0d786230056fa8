// SPDX-License-Identifier: Apache-2.0
//
// A training whose results depend only on its flags, for tests that kill parameter servers. Each ps
// has a matrix, an embedding table (with sparse updates), the momentum of both, and its own loss,
// so the variables of one ps never depend on the progress of another one. The training saves no
// checkpoints: if variables are lost, it ends with an error.
//
// With --step_millis, prints "step N" after each step. At the end the worker prints "weights", a
// hash of the bits of all variables, and the longest time from the end of one step to the end of
// the next.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <optional>

#include "client/device_setter.h"
#include "client/exactly_once.h"
#include "client/examples/task.h"
#include "client/optimizers.h"
#include "client/training.h"
#include "core/op/gradient.h"

namespace penstock::examples {
namespace {

using client::Variable;

constexpr char kProgram[] = "replica_train";
constexpr int kRows = 4;

struct Flags {
  TaskConfig task;
  int64_t steps = 100, step_millis = 0, width = 16, ids = 64;
  bool plain = false;
};

// Feeds the next batch, and feeds it again if the step failed.
class Batches final : public client::TrainingHook {
 public:
  Batches(const Flags& flags, const client::ExactlyOnce* once)
      : flags_(flags), exactly_once_(once) {}

  StatusOr<std::vector<Tensor>> Next() {
    if (next_ >= flags_.steps) return OutOfRange("there are no more batches");
    Tensor x(DType::kFloat, {kRows, flags_.width});
    int64_t at = next_ * x.num_elements();
    for (float& value : x.mutable_flat<float>()) {
      value = static_cast<float>(std::sin(1.3 * static_cast<double>(at++)));
    }
    std::vector<int32_t> ids;
    for (int i = 0; i < kRows; ++i) {
      ids.push_back(static_cast<int32_t>((next_ * 7 + i * 13) % flags_.ids));
    }
    ++next_;
    return std::vector<Tensor>{x, Tensor::Vector(ids)};
  }

  Status SessionReady(client::Session& session, int64_t global_step) override {
    next_ = global_step;
    if (exactly_once_ == nullptr) return OkStatus();
    ASSIGN_OR_RETURN(next_, exactly_once_->Begin(session));
    return OkStatus();
  }
  Status StepFailed(const Status& why) override {
    return exactly_once_ == nullptr ? why : exactly_once_->Explain(why);
  }
  Status AfterStep(const client::StepResult& result, bool*) override {
    const int64_t now_ns = Env::Real().NowNanos();
    if (first_ns_ == 0) first_ns_ = now_ns;
    if (last_ns_ != 0) longest_ns_ = std::max(longest_ns_, now_ns - last_ns_);
    last_ns_ = now_ns;
    if (flags_.step_millis > 0) {
      std::printf("step %" PRId64 "\n", result.global_step);
      std::fflush(stdout);
      Env::Real().SleepForNanos(flags_.step_millis * 1'000'000);
    }
    return OkStatus();
  }
  void Say() const {
    const double seconds = static_cast<double>(last_ns_ - first_ns_) * 1e-9;
    std::printf("longest step %.3f s, %.1f steps/s\n", static_cast<double>(longest_ns_) * 1e-9,
                static_cast<double>(flags_.steps) / std::max(seconds, 1e-9));
  }

 private:
  const Flags& flags_;
  const client::ExactlyOnce* const exactly_once_;
  int64_t next_ = 0, first_ns_ = 0, last_ns_ = 0, longest_ns_ = 0;
};

// Adds the tensor's bytes to an FNV-1a hash.
void AddToHash(const Tensor& tensor, uint64_t* hash) {
  const auto* bytes = static_cast<const unsigned char*>(tensor.raw_data());
  for (size_t i = 0; i < tensor.bytes(); ++i) *hash = (*hash ^ bytes[i]) * 0x100000001b3u;
}

Status Train(const Flags& flags, const std::string& target) {
  client::Program program;
  const int num_ps = NumTasks(flags.task, "ps");
  const auto scope = program.DeviceFunctionScope(
      client::ReplicaDeviceSetter({.ps_tasks = num_ps, .worker_device = TaskName(flags.task)}));
  std::vector<Variable> variables;
  const Output x =
      CallIn(program, "Placeholder", {},
             {{"dtype", DType::kFloat}, {"shape", PartialShape({kRows, flags.width})}});
  const Output ids = CallIn(program, "Placeholder", {},
                            {{"dtype", DType::kInt32}, {"shape", PartialShape({kRows})}});
  Outputs losses;
  for (int ps = 0; ps < num_ps; ++ps) {
    std::vector<Variable> own;
    {
      const auto there = program.DeviceScope(StrCat("/job:ps/task:", ps));
      own.emplace_back(program, StrCat("w", ps), Shape({flags.width, flags.width}),
                       client::GlorotUniform(ps + 1));
      own.emplace_back(program, StrCat("table", ps), Shape({flags.ids, flags.width}),
                       client::GlorotUniform(ps + 11));
    }
    const Output zero = Constant(program, Tensor::Scalar<int32_t>(0));
    const Output both = Constant(program, Tensor::Vector<int32_t>({0, 1}));
    losses.push_back(Mean(Square(MatMul(x, own[0]) + Gather(own[1], ids, zero) - x), both));
    variables.insert(variables.end(), own.begin(), own.end());
  }
  const Output loss = AddN(losses);
  client::Momentum optimizer(0.05, 0.9);
  std::optional<client::ExactlyOnce> once;
  Output train;
  if (flags.plain) {
    train = optimizer.Minimize(program, loss);
  } else {
    once.emplace(program);
    train = once->Apply(optimizer, optimizer.ComputeGradients(program, loss));
  }
  RETURN_IF_ERROR(program.status());

  Batches batches(flags, once ? &*once : nullptr);
  client::TrainingLoop loop(program,
                            {.train = train,
                             .inputs = {x, ids},
                             .next_batch = [&](int64_t) { return batches.Next(); },
                             .measures = {{"loss", loss}},
                             .once = once ? &*once : nullptr},
                            {.target = target, .retry_seconds = 0.1});
  loop.AddHook(&batches);
  RETURN_IF_ERROR(loop.Run());
  uint64_t hash = 0xcbf29ce484222325u;
  for (const Variable& slot : optimizer.slots()) variables.push_back(slot);
  for (const Variable& variable : variables) {
    ASSIGN_OR_RETURN(const Tensor value, loop.session().Fetch(variable));
    AddToHash(value, &hash);
  }
  batches.Say();
  std::printf("steps %" PRId64 " weights %016" PRIx64 "\n", loop.global_step(), hash);
  std::fflush(stdout);
  return OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  ClusterFlags cluster;
  CLI::App app("Trains on parameter servers that may die.");
  std::string checkpoint_dir;
  AddClusterFlags(app, &cluster);
  app.add_option("--checkpoint_dir", checkpoint_dir, "nothing is written there");
  app.add_option("--steps", flags.steps);
  app.add_option("--step_millis", flags.step_millis, "between steps");
  app.add_option("--width", flags.width, "of the matrices");
  app.add_option("--ids", flags.ids, "rows of the tables");
  app.add_flag("--plain", flags.plain, "an optimizer alone, without ExactlyOnce");
  CLI11_PARSE(app, argc, argv);
  StatusOr<TaskConfig> task = FindTask(app, cluster);
  if (!task.ok()) return Report(kProgram, task.status(), kMistake);
  flags.task = *std::move(task);
  return RunTask({.program = kProgram, .task = flags.task},
                 [&](const std::string& target) { return Train(flags, target); });
}

}  // namespace
}  // namespace penstock::examples

int main(int argc, char** argv) { return penstock::examples::Main(argc, argv); }
