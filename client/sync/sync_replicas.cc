// SPDX-License-Identifier: Apache-2.0
#include "client/sync/sync_replicas.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "client/ops/line_scope.h"
#include "core/base/error_origin.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

// A token with this value means that the chief has ended.
constexpr int64_t kNoMoreSteps = -1;
// The interval at which the chief's thread polls whether enough gradients have arrived. While too
// few have arrived, the interval doubles from the minimum to the maximum.
constexpr int64_t kPollNanosMin = 100'000, kPollNanosMax = 5'000'000;

Output Int64(Program& program, int64_t value) {
  return Constant(program, Tensor::Scalar<int64_t>(value));
}

SyncReplicasOptions CheckedOptions(Program& program, const SyncReplicasOptions& options,
                                   SourceLine line) {
  const bool good = options.replicas >= 1 && options.replica >= 0 &&
                    options.replica < options.replicas && options.replicas_to_aggregate >= 1 &&
                    options.replicas_to_aggregate <= options.replicas;
  if (good) return options;
  const CallerLine source(program, line);
  program.Fail(InvalidArgument("SyncReplicas: replica is ", options.replica,
                               " and replicas_to_aggregate is ", options.replicas_to_aggregate,
                               " of ", options.replicas, " replicas; they must be in [0, ",
                               options.replicas, ") and [1, ", options.replicas, "]"));
  SyncReplicasOptions harmless = options;
  harmless.replicas = harmless.replicas_to_aggregate = 1;
  harmless.replica = 0;
  return harmless;
}

}  // namespace

// The sum of one variable's gradients or, without a variable, the count of replicas whose gradients
// have arrived.
struct SyncReplicas::Sum {
  std::optional<VariableGradient> variable_gradient;
  Output accumulator, added;
};

SyncReplicas::SyncReplicas(Program& program, const Options& options, SourceLine line)
    : program_(program), options_(CheckedOptions(program, options, line)) {}

// Adds the gradient to its sum, which the replicas share by the variable's name.
SyncReplicas::Sum SyncReplicas::AddSum(const VariableGradient& g, Output local_step) {
  const auto device_scope = program_.ColocateWith(g.variable.handle());
  const bool sparse = g.gradient.sparse();
  const Attrs attrs = {{"dtype", g.variable.dtype()},
                       {"shape", g.variable.shape()},
                       // For each row, the mean of a sparse accumulator would count only the
                       // gradients that have the row.
                       {"reduction_type", sparse ? "SUM" : "MEAN"},
                       {"shared_name", StrCat("sync_replicas/", g.variable.name())}};
  Sum sum{.variable_gradient = g};
  if (!sparse) {
    sum.accumulator = CallIn(program_, "ResourceConditionalAccumulator", {}, attrs, "sum");
    sum.added =
        Call("ResourceAccumulatorApplyGradient", {sum.accumulator, local_step, g.gradient.values});
    return sum;
  }
  sum.accumulator = CallIn(program_, "SparseConditionalAccumulator", {}, attrs, "sum");
  sum.added = Call("SparseAccumulatorApplyGradient",
                   {sum.accumulator, local_step, Cast(g.gradient.indices, DType::kInt64),
                    g.gradient.values, Cast(g.gradient.dense_shape, DType::kInt64)},
                   {{"has_known_shape", true}});
  return sum;
}

// Adds an op on the staging area `name`, which all replicas share, on the device of the global
// step. `value`, if given, is the op's input.
Output SyncReplicas::AddStagingOp(const char* op, const std::string& name, Output value) {
  const auto device_scope = program_.ColocateWith(program_.GlobalStep().handle());
  const Attrs attrs = {{"dtypes", std::vector<DType>{DType::kInt64}},
                       {"shared_name", StrCat("sync_replicas/", name)}};
  if (value.valid()) return CallIn(program_, op, {Outputs{value}}, attrs);
  return CallIn(program_, op, {}, attrs);
}

Output SyncReplicas::Apply(Optimizer& optimizer, const std::vector<VariableGradient>& gradients,
                           SourceLine line) {
  const CallerLine source(program_, line);
  const auto names = program_.NameScope("sync_replicas");
  if (local_step_) {
    program_.Fail(FailedPrecondition("SyncReplicas: Apply was called twice"));
    return {&program_, -1, 0};
  }
  const Variable global_step = program_.GlobalStep();
  local_step_.emplace(program_, StrCat("local_step_", options_.replica), Shape(), Zeros(),
                      VariableOptions{.dtype = DType::kInt64, .local = true});
  const Output local_step = local_step_->Read();
  std::vector<Sum> sums;
  Outputs added;
  for (const VariableGradient& g : gradients) {
    if (g.gradient.none()) continue;
    sums.push_back(AddSum(g, local_step));
    added.push_back(sums.back().added);
  }
  // Counts a replica only when all sums include its gradients, so that an update includes all of
  // them.
  Sum arrivals;
  {
    const auto device_scope = program_.ColocateWith(global_step.handle());
    arrivals.accumulator = CallIn(program_, "ResourceConditionalAccumulator", {},
                                  {{"dtype", DType::kFloat},
                                   {"shape", PartialShape::Scalar()},
                                   {"reduction_type", "SUM"},
                                   {"shared_name", "sync_replicas/arrivals"}},
                                  "arrivals");
    const auto after = program_.ControlDependencies(added);
    arrivals.added =
        Call("ResourceAccumulatorApplyGradient",
             {arrivals.accumulator, local_step, Constant(program_, Tensor::Scalar<float>(1))});
  }
  const Output train = AddToken(arrivals.added);
  const auto unordered = program_.ClearControlDependencies();
  const std::string replica = StrCat(options_.replica);
  leave_ = AddStagingOp("Stage", "left_" + replica, Int64(program_, 1));
  {
    const Outputs cleared = {AddStagingOp("StageClear", "left_" + replica),
                             AddStagingOp("StageClear", "token_" + replica)};
    const auto after = program_.ControlDependencies(cleared);
    begin_ = local_step_->Assign(global_step.Read());
  }
  if (is_chief()) AddChiefOps(optimizer, sums, arrivals);
  return train;
}

// Adds the ops that wait, after the gradients have arrived, for the token, which is the number of
// the next step.
Output SyncReplicas::AddToken(Output arrived) {
  Output token;
  {
    const auto after = program_.ControlDependencies({arrived});
    token = AddStagingOp("Unstage", StrCat("token_", options_.replica));
  }
  const Output text = Constant(program_, Tensor::Scalar<std::string>("the chief has ended"));
  const Output checked = Call("Assert", {GreaterEqual(token, Int64(program_, 0)), Outputs{text}});
  if (checked.valid()) end_checks_.insert(program_.NodeOf(checked)->name());
  const auto after = program_.ControlDependencies({checked});
  return local_step_->Assign(token);
}

// Gives every replica the global step as its token. Each replica's staging area holds at most one
// token, the newest.
Output SyncReplicas::GiveTokens(const Outputs& after) {
  const auto ready = program_.ControlDependencies(after);
  const Output step = program_.GlobalStep().Read();
  Outputs given;
  for (int i = 0; i < options_.replicas; ++i) {
    const std::string name = StrCat("token_", i);
    const auto cleared = program_.ControlDependencies({AddStagingOp("StageClear", name)});
    given.push_back(AddStagingOp("Stage", name, step));
  }
  return program_.Group(given, "tokens_given", program_.GlobalStep().handle());
}

// Returns the numbers from which the chief decides whether to update: the number of gradients that
// have arrived, and the number of replicas that have left.
Output SyncReplicas::AddPoll(const Sum& arrivals, Output one) {
  const auto device_scope = program_.ColocateWith(program_.GlobalStep().handle());
  Outputs numbers = {Call("ResourceAccumulatorNumAccumulated", {arrivals.accumulator})};
  Outputs left;
  for (int i = 0; i < options_.replicas; ++i) {
    left.push_back(Minimum(AddStagingOp("StageSize", StrCat("left_", i)), one));
  }
  numbers.push_back(AddN(left));
  return Pack(numbers);
}

// Adds the ops that take the mean of a variable's gradients from their sum.
Gradient SyncReplicas::TakeMean(const Sum& sum, Output one) {
  const auto device_scope = program_.ColocateWith(sum.variable_gradient->variable.handle());
  const DType dtype = sum.variable_gradient->variable.dtype();
  const Attrs type = {{"dtype", dtype}};
  if (!sum.variable_gradient->gradient.sparse()) {
    return Call("ResourceAccumulatorTakeGradient", {sum.accumulator, one}, type);
  }
  const Output count = Call("AccumulatorNumAccumulated", {sum.accumulator});
  const auto counted = program_.ControlDependencies({count});
  const Outputs taken = CallN("SparseAccumulatorTakeGradient", {sum.accumulator, one}, type);
  return Gradient(taken[1] / Cast(count, dtype),
                  Cast(taken[0], sum.variable_gradient->gradient.indices.dtype()),
                  Cast(taken[2], sum.variable_gradient->gradient.dense_shape.dtype()));
}

// Adds the op that sets the global step of the sums to that of the variables. After a restore, the
// sums may have a later one.
Output SyncReplicas::AddRestart(const std::vector<Sum>& sums, const Sum& arrivals) {
  const Variable global_step = program_.GlobalStep();
  const Output step = global_step.Read();
  Outputs set;
  {
    const auto device_scope = program_.ColocateWith(global_step.handle());
    set.push_back(Call("ResourceAccumulatorSetGlobalStep", {arrivals.accumulator, step}));
  }
  for (const Sum& sum : sums) {
    const auto device_scope = program_.ColocateWith(sum.variable_gradient->variable.handle());
    const bool sparse = sum.variable_gradient->gradient.sparse();
    set.push_back(Call(sparse ? "AccumulatorSetGlobalStep" : "ResourceAccumulatorSetGlobalStep",
                       {sum.accumulator, step}));
  }
  return program_.Group(set, "restart");
}

void SyncReplicas::AddChiefOps(Optimizer& optimizer, const std::vector<Sum>& sums,
                               const Sum& arrivals) {
  const Variable global_step = program_.GlobalStep();
  const Output one = Constant(program_, Tensor::Scalar<int32_t>(1));
  poll_ = AddPoll(arrivals, one);
  // Take the arrivals first, so that replicas that arrive from now on do not count in this update.
  Output arrived;
  {
    const auto device_scope = program_.ColocateWith(global_step.handle());
    arrived = Call("ResourceAccumulatorTakeGradient", {arrivals.accumulator, one},
                   {{"dtype", DType::kFloat}});
  }
  std::vector<VariableGradient> means;
  for (const Sum& sum : sums) {
    const auto after = program_.ControlDependencies({arrived});
    means.push_back({TakeMean(sum, one), sum.variable_gradient->variable});
  }
  update_ = GiveTokens({optimizer.ApplyGradients(program_, means, global_step)});
  restart_ = AddRestart(sums, arrivals);
  // Gives tokens to the replicas that still wait for the token of an earlier chief, which has
  // ended.
  resume_ = GiveTokens({restart_});
  // The token that ends a replica is put after the token of the last step.
  Outputs ends;
  for (int i = 0; i < options_.replicas; ++i) {
    ends.push_back(AddStagingOp("Stage", StrCat("token_", i), Int64(program_, kNoMoreSteps)));
  }
  end_ = program_.Group(ends, "end", global_step.handle());
  fail_ = AddStagingOp("Stage", "token_0", Int64(program_, kNoMoreSteps));
}

Status SyncReplicas::SessionReady(Session& session, int64_t global_step) {
  if (!local_step_) return FailedPrecondition("SyncReplicas: its Apply is not the train op");
  SessionEnds();
  if (is_chief()) {
    // If the training is resumed, other replicas may wait for a token that was never given.
    const bool goes_on = std::exchange(began_, true) || global_step > 0;
    RETURN_IF_ERROR(session.Execute(goes_on ? resume_ : restart_));
  }
  RETURN_IF_ERROR(session.Execute(begin_));
  if (!is_chief()) return OkStatus();
  {
    MutexLock lock(updating_);
    served_ = OkStatus();
  }
  stop_ = std::make_unique<Cancellation>();
  server_ = options_.scheduler->StartThread("sync replicas", [this, &session] { Serve(session); });
  return OkStatus();
}

void SyncReplicas::SessionEnds() {
  if (stop_ != nullptr) stop_->Cancel(Cancelled("the session ends"));
  server_ = nullptr;
  stop_ = nullptr;
}

void SyncReplicas::Serve(Session& session) {
  const Status served = ServeUpdates(session);
  if (stop_->cancelled()) return;
  {
    MutexLock lock(updating_);
    served_ = served;
  }
  // Ends the waiting step of the chief's own replica. If this fails, a task is lost, which also
  // ends the step.
  session.Execute(fail_).IgnoreError();
}

bool SyncReplicas::HasEnoughGradients(int64_t arrived, int64_t left, int64_t waited_ns) const {
  const int64_t present = options_.replicas - left;
  const int64_t needed = std::min<int64_t>(options_.replicas_to_aggregate, present);
  if (arrived == 0) return false;
  return arrived >= needed ||
         (options_.straggler_seconds > 0 && waited_ns * 1e-9 > options_.straggler_seconds);
}

Status SyncReplicas::ServeUpdates(Session& session) {
  ASSIGN_OR_RETURN(const Callable poll, session.MakeCallable({}, {poll_}));
  ASSIGN_OR_RETURN(const Callable update, session.MakeCallable({}, {}, {update_}));
  int64_t poll_ns = kPollNanosMin, last_arrived = 0, waiting_since_ns = options_.env->NowNanos();
  while (!stop_->cancelled()) {
    ASSIGN_OR_RETURN(const std::vector<Tensor> polled, poll({}, {.cancellation = stop_.get()}));
    const auto numbers = polled[0].flat<int32_t>();
    const int64_t now = options_.env->NowNanos();
    if (numbers[0] != std::exchange(last_arrived, numbers[0])) waiting_since_ns = now;
    if (!HasEnoughGradients(numbers[0], numbers[1], now - waiting_since_ns)) {
      options_.env->SleepForNanos(poll_ns);
      poll_ns = std::min(2 * poll_ns, kPollNanosMax);
      continue;
    }
    poll_ns = kPollNanosMin;
    last_arrived = 0;
    MutexLock lock(updating_);
    // Not cancellable: an update is applied completely, unless a task is lost.
    RETURN_IF_ERROR(update({}).status());
    updates_.fetch_add(1);
    gradients_.fetch_add(numbers[0]);
  }
  return OkStatus();
}

Status SyncReplicas::StepFailed(const Status& why) {
  if (!absl::IsInvalidArgument(why) || !end_checks_.contains(FailedNode(why))) return why;
  MutexLock lock(updating_);
  if (!served_.ok()) return served_;
  return OutOfRange("the chief has ended the training");
}

Status SyncReplicas::End(Session& session, int64_t global_step) {
  SessionEnds();
  // When the chief ends, all replicas end. When another replica ends, the others go on.
  return session.Execute(is_chief() ? end_ : leave_);
}

}  // namespace penstock::client
