// SPDX-License-Identifier: Apache-2.0
#include "client/exactly_once.h"

#include <map>
#include <utility>

#include "client/device_setter.h"
#include "client/mutex.h"
#include "client/ops/line_scope.h"
#include "core/base/error_origin.h"
#include "core/op/device_name.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

Output Number(Program& program, int64_t value) {
  return Constant(program, Tensor::Scalar<int64_t>(value));
}
// Returns a tensor with 1 at element `index` and 0 elsewhere.
Output OneHot(Program& program, int index, const Shape& shape) {
  std::vector<int64_t> numbers(shape.num_elements());
  numbers[index] = 1;
  return Constant(program, Tensor::Of<int64_t>(shape, numbers));
}
Output Flat(Program& program, Output x) {
  return Reshape(x, Constant(program, Tensor::Vector<int64_t>({-1})));
}
// Adds a node that fails with `otherwise` and the values unless the condition holds.
Output Check(Program& program, Output condition, const std::string& otherwise, Outputs values) {
  values.insert(values.begin(), Constant(program, Tensor::Scalar<std::string>(otherwise)));
  return Call("Assert", {condition, values});
}
Output ElementAt(Program& program, Output numbers, int index) {
  return Gather(numbers, Number(program, index), Number(program, 0));
}

// Returns `share` if it is valid. Otherwise sets the program's error and returns a valid share.
WorkerShare CheckedShare(Program& program, const WorkerShare& share, SourceLine line) {
  const CallerLine source(program, line);
  if (0 <= share.worker && share.worker < share.workers) return share;
  program.Fail(InvalidArgument("ExactlyOnce: worker is ", share.worker, ", must be in [0, ",
                               share.workers, "), the workers"));
  return {};
}

// Returns the value that the variable's initialiser assigns.
Output InitialValue(Program& program, const Variable& variable) {
  if (!variable.initializer().valid()) return variable.initializer();
  const Endpoint& value = program.NodeOf(variable.initializer())->input(1);
  return program.OutputOf(value.node, value.index);
}

Status CheckDevice(const Variable& variable) {
  const StatusOr<DeviceName> device = DeviceName::Parse(variable.device());
  if (!device.ok() || !device->type) return OkStatus();
  if (*device->type == "CPU" && device->index.value_or(0) == 0) return OkStatus();
  return InvalidArgument("ExactlyOnce: variable '", variable.name(), "' is on ", variable.device(),
                         "; it must be on the first CPU of its task");
}

}  // namespace

// The variables and gradients of one Apply on one task.
struct ExactlyOnce::Section {
  std::string host;
  std::vector<VariableGradient> gradients;
  bool finishes = false;  // true if this section runs Optimizer::FinishUpdates
  bool global_step = false;
};

// Two ops. A step runs exactly one of them: `passed_over` if this section has applied the batch
// already, `next` if it must apply the batch now.
struct ExactlyOnce::Decision {
  Output passed_over, next;
};

ExactlyOnce::ExactlyOnce(Program& program, const WorkerShare& share, SourceLine line)
    : program_(program), share_(CheckedShare(program, share, line)) {}

Output ExactlyOnce::Apply(Optimizer& optimizer, const std::vector<VariableGradient>& gradients,
                          SourceLine line) {
  const CallerLine source(program_, line);
  const auto names = program_.NameScope("exactly_once");
  if (position_) {
    program_.Fail(FailedPrecondition("ExactlyOnce: Apply was called twice"));
    return {&program_, -1, 0};
  }
  const Outputs tensors = optimizer.BeginUpdates(program_, gradients);
  const std::vector<Section> sections = MakeSections(gradients);
  const int numbers = 1 + static_cast<int>(sections.size());
  position_.emplace(program_, "batches_begun", Shape({numbers}), Zeros(),
                    VariableOptions{.dtype = DType::kInt64, .local = true});
  Output position;
  {
    const Output begun = position_->AssignAdd(OneHot(program_, 0, Shape({numbers})));
    const auto after = program_.ControlDependencies({begun});
    position = position_->Read();
  }
  sections_ = static_cast<int>(sections.size());
  for (const Section& section : sections) AddCount(section);
  Outputs ends;
  for (size_t i = 0; i < sections.size(); ++i) {
    ends.push_back(ApplyOnTask(sections[i], static_cast<int>(i), optimizer, tensors, position));
  }
  AddBegin();
  return program_.Group(ends, "applied");
}

// Returns the sections in an order that is the same in all workers' programs. Sets the program's
// error if a variable is not on CPU:0 of its task.
std::vector<ExactlyOnce::Section> ExactlyOnce::MakeSections(
    const std::vector<VariableGradient>& gradients) const {
  std::map<std::string, Section> by_host;
  by_host[HostOf(program_.GlobalStep().device())].global_step = true;
  bool first = true;
  for (const VariableGradient& g : gradients) {
    if (g.gradient.none()) continue;
    const Status status = CheckDevice(g.variable);
    if (!status.ok()) program_.Fail(status);
    Section& section = by_host[HostOf(g.variable.device())];
    section.gradients.push_back(g);
    if (std::exchange(first, false)) section.finishes = true;
  }
  std::vector<Section> sections;
  for (auto& [host, section] : by_host) {
    section.host = host;
    sections.push_back(std::move(section));
  }
  return sections;
}

// If there are several sections, each section's counts are one row of a larger tensor.
Shape ExactlyOnce::CountShape() const {
  return sections_ == 1 ? Shape({share_.workers}) : Shape({1, share_.workers});
}

// Adds the variable with a section's counts, and the section's mutexes. Checkpoints hold the counts
// of all sections as one tensor, "batches_taken", with a row for each section. With one section it
// is a vector, as in checkpoints of earlier versions.
void ExactlyOnce::AddCount(const Section& section) {
  const auto device_scope = program_.DeviceScope(section.host);
  const auto root = program_.NameScope("");
  const std::string all = "batches_taken";
  std::string name = all;
  VariableOptions options{.dtype = DType::kInt64, .trainable = false};
  if (sections_ > 1) {
    StrAppend(&name, "_", taken_.size() + 1, "_of_", sections_);
    options.part = VariablePart{.whole_name = all,
                                .whole = Shape({sections_, share_.workers}),
                                .start = static_cast<int64_t>(taken_.size())};
  }
  taken_.emplace_back(program_, name, CountShape(), Zeros(), options);
  for (int i = 0; i < share_.workers; ++i) {
    mutexes_.push_back(NewMutex(program_, StrCat(name, "/mutex_", i), taken_.back().handle()));
  }
}

void ExactlyOnce::SetUp(SaverOptions* options) const {
  options->mutexes = mutexes_;
  for (size_t i = 0; i < taken_.size(); ++i) {
    options->from_whole[taken_[i].name()] = [this, i](Output saved) {
      return CountsFromSaved(saved, static_cast<int>(i));
    };
  }
}

// Adds nodes that compute the counts of section `index` from those in a checkpoint. With another
// number of sections, the variables are divided otherwise among the tasks, so the counts of all
// sections must be equal.
Output ExactlyOnce::CountsFromSaved(Output saved, int index) const {
  const Output zero = Number(program_, 0);
  const Output axes = Constant(program_, Tensor::Vector<int32_t>({0, 1}));
  const Output shape = ShapeOf(saved, DType::kInt64);
  const Output workers = Gather(shape, SizeOf(shape, DType::kInt64) - 1, zero);
  const Output rows = Reshape(saved, Pack({Number(program_, -1), workers}));
  const Output same_sections =
      Equal(ElementAt(program_, ShapeOf(rows, DType::kInt64), 0), Number(program_, sections_));
  const Output same = LogicalAnd(same_sections, Equal(workers, Number(program_, share_.workers)));
  const Output equal = Call("All", {Equal(rows, ElementAt(program_, rows, 0)), axes});
  const Output checked =
      Check(program_, Call("LogicalOr", {same, equal}),
            StrCat("ExactlyOnce: the checkpoint was saved with other numbers of parameter servers "
                   "and workers than ",
                   sections_, " and ", share_.workers,
                   ", while some servers had applied a batch and others had not; resume the "
                   "training with the old numbers first"),
            {rows});
  const auto after = program_.ControlDependencies({checked});
  const Output row = Gather(rows, Select(same_sections, Number(program_, index), zero), zero);
  const Output counts = CountsOfWorkers(row, workers);
  std::vector<int64_t> dims = {share_.workers};
  if (sections_ > 1) dims.insert(dims.begin(), 1);
  return Reshape(counts, Constant(program_, Tensor::Vector(dims)));
}

// Adds nodes that compute the counts of this training's workers from those of `workers` workers.
// With another number of workers, the batches are divided otherwise among them, so the applied
// batches must be the first ones of the input.
Output ExactlyOnce::CountsOfWorkers(Output counts, Output workers) const {
  const Output zero = Number(program_, 0), own_workers = Number(program_, share_.workers);
  const Output axis = Constant(program_, Tensor::Vector<int32_t>({0}));
  const Output same = Equal(workers, own_workers);
  if (!share_.round_robin) {
    const auto after = program_.ControlDependencies(
        {Check(program_, same,
               StrCat("ExactlyOnce: the checkpoint was saved with another number of workers than ",
                      share_.workers, ", which needs WorkerShare::round_robin"),
               {workers})});
    return Identity(counts);
  }
  const Output total = Sum(counts, axis);
  const Output in_turn = Call("All", {Equal(counts, DivideInTurn(total, workers)), axis});
  const auto after = program_.ControlDependencies(
      {Check(program_, Call("LogicalOr", {same, in_turn}),
             StrCat("ExactlyOnce: the checkpoint was saved with another number of workers than ",
                    share_.workers,
                    ", while some workers were ahead of others; resume the training with the old "
                    "number until all workers have applied equally many batches"),
             {counts})});
  const Output both = ConcatV2({counts, DivideInTurn(total, own_workers)}, zero);
  const Output begin = Select(same, zero, workers);
  return Gather(both, Range(begin, begin + own_workers, Number(program_, 1)), zero);
}

// Adds nodes that compute how many of the first `total` batches each of `workers` workers has, if
// they get the batches in turn.
Output ExactlyOnce::DivideInTurn(Output total, Output workers) const {
  const Output worker = Range(Number(program_, 0), workers, Number(program_, 1));
  return Call("FloorDiv", {total + workers - 1 - worker, workers});
}

// Adds the updates of the variables of one task, and returns an op that runs after them. No node
// that runs after the lock receives a tensor from another task, so a lost task cannot stop an
// update halfway.
Output ExactlyOnce::ApplyOnTask(const Section& section, int index, Optimizer& optimizer,
                                Outputs tensors, Output position) {
  const auto device_scope = program_.DeviceScope(section.host);
  Outputs arrived;
  const auto move = [&](Output* value) {
    if (value->valid()) arrived.push_back(*value = Call("Identity", {*value}));
  };
  std::vector<VariableGradient> gradients = section.gradients;
  for (VariableGradient& g : gradients) {
    move(&g.gradient.values);
    move(&g.gradient.indices);
  }
  for (Output& tensor : tensors) move(&tensor);
  move(&position);

  const Output mutex = mutexes_[index * share_.workers + share_.worker];
  const Outputs lock = Lock(program_, {mutex}, {program_.Group(arrived, "arrived", mutex)});
  const Decision decision = DecideBatch(index, position, lock);
  Output counted;
  {
    const auto go = program_.ControlDependencies({decision.next});
    Outputs updates = optimizer.Update(program_, gradients, tensors);
    if (section.finishes) updates = optimizer.FinishUpdates(program_, updates);
    const auto updated = program_.ControlDependencies(updates);
    Outputs counts = {taken_[index].AssignAdd(OneHot(program_, share_.worker, CountShape()))};
    if (section.global_step) counts.push_back(program_.GlobalStep().AssignAdd(Number(program_, 1)));
    const auto all = program_.ControlDependencies(counts);
    counted = Identity(decision.next);
  }
  return Unlock(program_, lock, {CallN("Merge", {Outputs{decision.passed_over, counted}})[0]});
}

// Adds the nodes that decide about the batch at `position`. If the batch is the next one of this
// section, the step applies it. If an earlier incarnation of this worker may have applied the batch
// (before this session began, or in the one step that was still running then), the step passes over
// it. In all other cases the step fails.
ExactlyOnce::Decision ExactlyOnce::DecideBatch(int index, Output position, const Outputs& lock) {
  const Output batch = ElementAt(program_, position, 0);
  const Output count_before = ElementAt(program_, position, 1 + index);
  Output next;
  {
    const auto locked = program_.ControlDependencies(lock);
    next = BatchesTaken(taken_[index]) + 1;
  }
  const Outputs checked = {
      Check(program_, LessEqual(batch, next),
            "the variables are at an earlier batch than this worker", {batch, next}),
      Check(program_,
            Call("LogicalOr", {GreaterEqual(batch, next), LessEqual(batch, count_before + 1)}),
            StrCat("ExactlyOnce: another process also trains as worker ", share_.worker, " of ",
                   share_.workers),
            {batch, next})};
  if (checked[0].valid()) earlier_checks_.insert(program_.NodeOf(checked[0])->name());
  const auto committed =
      program_.ControlDependencies({Commit(program_, taken_[index].handle(), checked)});
  const Output is_next = Equal(batch, next);
  const Outputs sides = CallN("Switch", {is_next, is_next});
  return {Identity(sides[0]), Identity(sides[1])};
}

Output ExactlyOnce::BatchesTaken(const Variable& taken) const {
  const auto device_scope = program_.ColocateWith(taken.handle());
  return ElementAt(program_, Flat(program_, taken.Read()), share_.worker);
}

// Adds the op that sets `position_` from this worker's counts: first their minimum over all tasks,
// then the count of each task.
void ExactlyOnce::AddBegin() {
  const auto unordered = program_.ClearControlDependencies();
  Outputs counts_before;
  for (const Variable& taken : taken_) counts_before.push_back(BatchesTaken(taken));
  Output all = counts_before[0];
  for (const Output& there : counts_before) all = Minimum(all, there);
  counts_before.insert(counts_before.begin(), all);
  begin_ = position_->Assign(Pack(counts_before));
}

Output ExactlyOnce::Initialize(const std::vector<Variable>& variables, SourceLine line) const {
  const CallerLine source(program_, line);
  const auto unordered = program_.ClearControlDependencies();
  std::map<std::string, std::vector<Variable>> by_host;
  for (const Variable& variable : variables) by_host[HostOf(variable.device())].push_back(variable);
  const std::map<std::string, Outputs> mutexes = MutexesByHost(program_, mutexes_);
  Outputs initialized;
  for (const auto& [host, own] : by_host) {
    const auto found = mutexes.find(host);
    initialized.push_back(found == mutexes.end() ? program_.Initialize(own)
                                                 : InitializeLocked(own, found->second));
  }
  return program_.Group(initialized, "init");
}

// Adds the ops that initialise the variables of one task. The initial values are there before the
// mutexes are locked, as in ApplyOnTask.
Output ExactlyOnce::InitializeLocked(const std::vector<Variable>& variables,
                                     const Outputs& mutexes) const {
  Outputs values;
  for (const Variable& variable : variables) {
    const auto device_scope = program_.ColocateWith(variable.handle());
    values.push_back(Call("Identity", {InitialValue(program_, variable)}));
  }
  const Outputs locks = Lock(program_, mutexes, values);
  Outputs assigned;
  {
    const auto locked = program_.ControlDependencies({Commit(program_, locks[0], locks)});
    for (size_t i = 0; i < variables.size(); ++i) {
      const SourceLine line = variables[i].source_line();
      assigned.push_back(variables[i].Assign({values[i], line.file, line.line}));
    }
  }
  return Unlock(program_, locks, assigned);
}

StatusOr<int64_t> ExactlyOnce::Begin(Session& session) const {
  if (!position_) return FailedPrecondition("ExactlyOnce: its Apply is not the step's train op");
  RETURN_IF_ERROR(session.Execute(begin_));
  ASSIGN_OR_RETURN(const Tensor position, session.Fetch(*position_));
  return position.flat<int64_t>()[0];
}

Status ExactlyOnce::Explain(const Status& why) const {
  if (!absl::IsInvalidArgument(why) || !earlier_checks_.contains(FailedNode(why))) return why;
  return Aborted("worker ", share_.worker,
                 " goes back to where the variables are in its input: ", why.message());
}

}  // namespace penstock::client
