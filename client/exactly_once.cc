// SPDX-License-Identifier: Apache-2.0
#include "client/exactly_once.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "client/device_setter.h"
#include "client/mutex.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

constexpr char kElsewhere[] = "the variables are at an earlier batch than this worker";

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

// What one task holds.
struct ExactlyOnce::Section {
  std::vector<VariableGradient> gradients;
  bool first_gradient = false;  // of all
  bool global_step = false;
  Output beside;  // a variable's handle
};

ExactlyOnce::ExactlyOnce(Program& program, const WorkerShare& share)
    : program_(program),
      share_(Checked(program, share)),
      position_(program, "batches_begun", Shape(), Zeros(),
                {.dtype = DType::kInt64, .local = true}) {}

Output ExactlyOnce::Apply(Optimizer& optimizer, const std::vector<VariableGradient>& gradients) {
  const auto names = program_.NameScope("exactly_once");
  const Outputs before = optimizer.BeginUpdates(program_, gradients);
  Output position;
  {
    const auto begun = program_.ControlDependencies({position_.AssignAdd(Number(program_, 1))});
    position = position_.Read();
  }
  Outputs ends;
  for (const Section& section : Sections(gradients)) {
    ends.push_back(
        ApplyThere(section, optimizer, section.first_gradient ? before : Outputs(), position));
  }
  const auto unordered = program_.ClearControlDependencies();
  begin_ = position_.Assign(Taken());
  return program_.Group(ends, "applied");
}

// In an order that all workers' programs have in common.
std::vector<ExactlyOnce::Section> ExactlyOnce::Sections(
    const std::vector<VariableGradient>& gradients) const {
  std::map<std::string, Section> by_host;
  const Variable global_step = program_.GlobalStep();
  by_host[HostOf(global_step.device())] = {.global_step = true, .beside = global_step.handle()};
  bool first = true;
  for (const VariableGradient& g : gradients) {
    if (g.gradient.none()) continue;
    Section& section = by_host[HostOf(g.variable.device())];
    section.gradients.push_back(g);
    section.beside = g.variable.handle();
    section.first_gradient |= std::exchange(first, false);
  }
  std::vector<Section> sections;
  for (auto& [host, section] : by_host) sections.push_back(std::move(section));
  return sections;
}

// A task's updates, when all they need, and `before`, is there.
Output ExactlyOnce::ApplyThere(const Section& section, Optimizer& optimizer, const Outputs& before,
                               Output position) {
  const auto here = program_.ColocateWith(section.beside);
  const Output mutex = AddCount();
  const Variable& taken = taken_.back();
  Outputs ready = before;
  const auto moved = [&](Output value) {
    if (!value.valid()) return value;
    ready.push_back(Call("Identity", {value}));
    return ready.back();
  };
  std::vector<VariableGradient> gradients = section.gradients;
  for (VariableGradient& g : gradients) {
    g.gradient.values = moved(g.gradient.values);
    g.gradient.indices = moved(g.gradient.indices);
  }
  position = moved(position);
  const Outputs lock = Lock(program_, {mutex}, {program_.Group(ready, "arrived", mutex)});
  const Outputs is_next = Next(taken, position, lock);
  Output counted;
  {
    const auto go = program_.ControlDependencies({is_next[1]});
    Outputs updates = optimizer.Update(program_, gradients);
    if (section.first_gradient) updates = optimizer.FinishUpdates(program_, updates);
    const auto after = program_.ControlDependencies(updates);
    if (section.global_step)
      updates.push_back(program_.GlobalStep().AssignAdd(Number(program_, 1)));
    std::vector<int64_t> one(share_.workers);
    one[share_.worker] = 1;
    const auto last = program_.ControlDependencies(updates);
    const auto counts =
        program_.ControlDependencies({taken.AssignAdd(Constant(program_, Tensor::Vector(one)))});
    counted = Identity(is_next[1]);
  }
  return Unlock(program_, lock, {CallN("Merge", {Outputs{is_next[0], counted}})[0]});
}

// Counts the batches of the task of the scope; returns this worker's mutex there.
Output ExactlyOnce::AddCount() {
  const auto root = program_.NameScope("");
  taken_.emplace_back(program_, "batches_taken", Shape({share_.workers}), Zeros(),
                      VariableOptions{.dtype = DType::kInt64, .trainable = false});
  Outputs mutexes;
  for (int i = 0; i < share_.workers; ++i) {
    mutexes.push_back(
        NewMutex(program_, StrCat(taken_.back().name(), "/mutex_", i), taken_.back().handle()));
  }
  mutexes_.insert(mutexes_.end(), mutexes.begin(), mutexes.end());
  return mutexes[share_.worker];
}

// Two outputs, of which the second one lives where the batch is the next one, the first where it
// has been applied. Fails where batches between are missing.
Outputs ExactlyOnce::Next(const Variable& taken, Output position, const Outputs& lock) const {
  Output next;
  {
    const auto locked = program_.ControlDependencies(lock);
    next = TakenOf(taken) + 1;
  }
  const Output elsewhere = Constant(program_, Tensor::Scalar<std::string>(kElsewhere));
  const Output checked =
      Call("Assert", {LessEqual(position, next), Outputs{elsewhere, position, next}});
  const auto committed =
      program_.ControlDependencies({Commit(program_, taken.handle(), {checked})});
  const Output is_next = Equal(position, next);
  const Outputs sides = CallN("Switch", {is_next, is_next});
  return {Identity(sides[0]), Identity(sides[1])};
}

Output ExactlyOnce::TakenOf(const Variable& taken) const {
  const auto here = program_.ColocateWith(taken.handle());
  return Gather(taken.Read(), Number(program_, share_.worker), Number(program_, 0));
}

Output ExactlyOnce::Taken() const {
  Output least;
  for (const Variable& taken : taken_) {
    const Output there = TakenOf(taken);
    least = least.valid() ? Minimum(least, there) : there;
  }
  return least;
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
