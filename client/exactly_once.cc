// SPDX-License-Identifier: Apache-2.0
#include "client/exactly_once.h"

#include "absl/strings/match.h"
#include "client/mutex.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

constexpr char kElsewhere[] = "the variables are at another batch than this worker";

Output Moved(Output value) { return value.valid() ? Call("Identity", {value}) : value; }

Output Elsewhere(Program& program) {
  return Constant(program, Tensor::Scalar<std::string>(kElsewhere));
}

Output Number(Program& program, int64_t value) {
  return Constant(program, Tensor::Scalar<int64_t>(value));
}

// `share`, or an error of the program's and a share that does no harm.
WorkerShare Checked(Program& program, const WorkerShare& share) {
  if (0 <= share.worker && share.worker < share.workers) return share;
  program.Fail(InvalidArgument("ExactlyOnce: worker is ", share.worker, ", must be in [0, ",
                               share.workers, "), the workers"));
  return {};
}

}  // namespace

ExactlyOnce::ExactlyOnce(Program& program, const WorkerShare& share)
    : program_(program),
      share_(Checked(program, share)),
      taken_(program, "batches_taken", Shape({share_.workers}), Zeros(),
             {.dtype = DType::kInt64, .trainable = false}),
      position_(program, "batches_begun", Shape(), Zeros(),
                {.dtype = DType::kInt64, .local = true}) {
  const auto names = program.NameScope("exactly_once");
  const auto unordered = program.ClearControlDependencies();
  for (int i = 0; i < share_.workers; ++i) {
    mutexes_.push_back(NewMutex(program, StrCat("updates_", i), taken_.handle()));
  }
  begin_ = position_.Assign(Taken());
}

Output ExactlyOnce::Taken() const {
  return Gather(taken_.Read(), Number(program_, share_.worker), Number(program_, 0));
}

Output ExactlyOnce::Apply(Optimizer& optimizer,
                          const std::vector<VariableGradient>& gradients) const {
  const auto names = program_.NameScope("exactly_once");
  std::vector<VariableGradient> moved = gradients;
  Outputs arrived;
  for (VariableGradient& g : moved) {
    if (g.gradient.none()) continue;
    const auto here = program_.ColocateWith(g.variable.handle());
    g.gradient.values = Moved(g.gradient.values);
    g.gradient.indices = Moved(g.gradient.indices);
    arrived.push_back(g.gradient.values);
    if (g.gradient.sparse()) arrived.push_back(g.gradient.indices);
  }
  Output position;
  {
    const auto begun = program_.ControlDependencies({position_.AssignAdd(Number(program_, 1))});
    const Output read = position_.Read();
    const auto here = program_.ColocateWith(taken_.handle());
    arrived.push_back(position = Moved(read));
  }
  // Each edge between two tasks is a message: as few as do.
  const Output mutex = mutexes_[share_.worker];
  const Outputs lock = Lock(program_, {mutex}, {program_.Group(arrived, "arrived", mutex)});
  const Output turn = Commit(program_, taken_.handle(), {Check(position, lock[0])});
  Output updated;
  {
    const auto committed = program_.ControlDependencies({turn});
    updated = optimizer.ApplyGradients(program_, moved, program_.GlobalStep());
  }
  std::vector<int64_t> one(share_.workers);
  one[share_.worker] = 1;
  const auto here = program_.ColocateWith(taken_.handle());
  const auto after = program_.ControlDependencies({updated});
  const Output counted = taken_.AssignAdd(Constant(program_, Tensor::Vector(one)));
  return Unlock(program_, lock, {counted});
}

// Fails where the step would apply another batch than the next one.
Output ExactlyOnce::Check(Output position, Output lock) const {
  const auto here = program_.ColocateWith(taken_.handle());
  const auto locked = program_.ControlDependencies({lock});
  const Output next = Taken() + 1;
  return Call("Assert", {Equal(position, next), Outputs{Elsewhere(program_), position, next}});
}

StatusOr<int64_t> ExactlyOnce::Begin(Session& session) const {
  RETURN_IF_ERROR(session.Execute(begin_));
  ASSIGN_OR_RETURN(const Tensor position, session.Fetch(position_));
  return position.scalar<int64_t>();
}

Status ExactlyOnce::Explain(const Status& why) const {
  if (!absl::IsInvalidArgument(why) || !absl::StrContains(why.message(), kElsewhere)) return why;
  return Aborted("worker ", share_.worker,
                 " goes back to where the variables are in its input: ", why.message());
}

}  // namespace penstock::client
