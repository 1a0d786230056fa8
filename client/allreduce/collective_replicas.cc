// SPDX-License-Identifier: Apache-2.0
#include "client/allreduce/collective_replicas.h"

#include <map>
#include <utility>

#include "client/device_setter.h"
#include "client/ops/line_scope.h"

namespace penstock::client {
namespace {

Output Ints(Program& program, const std::vector<int64_t>& values) {
  return Constant(program, Tensor::Vector<int64_t>(values));
}

Output Flat(Program& program, Output value) {
  return Call("Reshape", {value, Ints(program, {-1})});
}

}  // namespace

CollectiveReplicas::CollectiveReplicas(Program& program, const Options& options, SourceLine line)
    : program_(program), options_(options) {
  const CallerLine source(program, line);
  if (options.workers < 1 || options.worker < 0 || options.worker >= options.workers) {
    program.Fail(InvalidArgument("collective replicas: there is no worker ", options.worker, " of ",
                                 options.workers));
  }
}

GraphBuilder::DeviceFunction CollectiveReplicas::Devices() const {
  return OnDevice(options_.device.empty() ? StrCat("/job:worker/task:", options_.worker)
                                          : options_.device);
}

bool CollectiveReplicas::is_chief() const {
  return options_.group != nullptr ? options_.group->is_chief() : options_.worker == 0;
}

Output CollectiveReplicas::Collective(const std::string& op, const Outputs& input, int64_t instance,
                                      Attrs attrs, const std::string& name,
                                      const std::optional<Shape>& shape) {
  std::vector<NodeInput> inputs(input.begin(), input.end());
  if (options_.group == nullptr) {
    attrs["group_key"] = options_.group_key;
    attrs["group_size"] = int64_t{options_.workers};
    attrs["instance_key"] = instance;
    if (shape) attrs["shape"] = PartialShape(*shape);
    if (op == "CollectiveReduce") attrs["subdiv_offsets"] = std::vector<int64_t>{0};
    return CallIn(program_, op, inputs, std::move(attrs), name);
  }
  inputs.emplace_back(options_.group->group_size());
  inputs.emplace_back(options_.group->group_key());
  inputs.emplace_back(Constant(program_, Tensor::Scalar<int32_t>(static_cast<int32_t>(instance))));
  if (op == "CollectiveReduce") inputs.emplace_back(Outputs());
  if (op == "CollectiveBcastRecv") {
    inputs.emplace_back(Ints(program_, {shape->dims().begin(), shape->dims().end()}));
  }
  return CallIn(program_, op + "V2", inputs, std::move(attrs), name);
}

Output CollectiveReplicas::AllReduce(Output value, const char* final_op, const std::string& name) {
  reduced_.push_back(Collective("CollectiveReduce", {value}, NewInstance(),
                                {{"merge_op", "Add"}, {"final_op", final_op}}, name));
  return reduced_.back();
}

// Divides the gradients into buckets of one type each, from the last gradient to the first, because
// the backward pass computes them in that order. Sets the program's error and returns no buckets if
// the shape of a variable is not fully known.
std::vector<CollectiveReplicas::Bucket> CollectiveReplicas::MakeBuckets(
    const std::vector<VariableGradient>& gradients) const {
  std::vector<Bucket> buckets;
  std::map<DType, size_t> open_buckets;  // by type: the index of the bucket that is being filled
  for (size_t i = gradients.size(); i-- > 0;) {
    if (gradients[i].gradient.none()) continue;
    const Variable& variable = gradients[i].variable;
    if (!variable.shape().fully_known()) {
      program_.Fail(InvalidArgument("collective replicas: the shape of variable '", variable.name(),
                                    "' must be fully known, is ", variable.shape().ToString()));
      return {};
    }
    const int64_t bytes =
        variable.shape().ToShape().num_elements() * static_cast<int64_t>(SizeOf(variable.dtype()));
    const auto found = open_buckets.find(variable.dtype());
    if (found == open_buckets.end() ||
        buckets[found->second].bytes + bytes > options_.bucket_bytes) {
      open_buckets[variable.dtype()] = buckets.size();
      buckets.emplace_back();
    }
    Bucket& bucket = buckets[open_buckets[variable.dtype()]];
    bucket.gradients.push_back(i);
    bucket.bytes += bytes;
  }
  return buckets;
}

std::vector<VariableGradient> CollectiveReplicas::Average(
    const std::vector<VariableGradient>& gradients, SourceLine line) {
  const CallerLine source(program_, line);
  const auto names = program_.NameScope("all_reduce");
  std::vector<VariableGradient> averages = gradients;
  int number = 0;
  for (const Bucket& bucket : MakeBuckets(gradients)) {
    const std::string name = StrCat("bucket_", number++);
    if (bucket.gradients.size() == 1) {
      Gradient& gradient = averages[bucket.gradients[0]].gradient;
      gradient = Gradient(AllReduce(Dense(gradient), "Div", name));
      continue;
    }
    Outputs flat;
    std::vector<int64_t> sizes;
    for (const size_t i : bucket.gradients) {
      flat.push_back(Flat(program_, Dense(gradients[i].gradient)));
      sizes.push_back(gradients[i].variable.shape().ToShape().num_elements());
    }
    const Output axis = Constant(program_, Tensor::Scalar<int32_t>(0));
    const Output joined = Call("ConcatV2", {flat, axis});
    const Outputs parts =
        CallN("SplitV", {AllReduce(joined, "Div", name), Ints(program_, sizes), axis},
              {{"num_split", static_cast<int64_t>(sizes.size())}});
    if (!program_.status().ok()) return averages;
    for (size_t k = 0; k < sizes.size(); ++k) {
      VariableGradient& average = averages[bucket.gradients[k]];
      const Shape shape = average.variable.shape().ToShape();
      const std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
      average.gradient = Gradient(Call("Reshape", {parts[k], Ints(program_, dims)}));
    }
  }
  if (options_.group != nullptr) BeginUpdate(&averages);
  return averages;
}

// Replaces the averages by copies that are available only when all averages have arrived and the
// group's update has begun.
void CollectiveReplicas::BeginUpdate(std::vector<VariableGradient>* averages) {
  if (std::exchange(update_begins_, true)) {
    program_.Fail(FailedPrecondition(
        "collective replicas: in an elastic group, average all gradients of a step at once"));
  }
  const auto after = program_.ControlDependencies({options_.group->BeginUpdate(reduced_)});
  for (VariableGradient& average : *averages) {
    if (average.gradient.none()) continue;
    average.gradient = Gradient(Call("Identity", {Dense(average.gradient)}));
  }
}

Output CollectiveReplicas::Average(Output value, SourceLine line) {
  const CallerLine source(program_, line);
  if (update_begins_) {
    program_.Fail(FailedPrecondition(
        "collective replicas: in an elastic group, average values before the gradients"));
  }
  return AllReduce(value, "Div", "average");
}

Output CollectiveReplicas::Send(const Variable& variable, int64_t instance) {
  return Collective("CollectiveBcastSend", {variable.Read()}, instance, {}, "",
                    variable.shape().ToShape());
}

Output CollectiveReplicas::Receive(const Variable& variable, int64_t instance) {
  return Collective("CollectiveBcastRecv", {}, instance, {{"T", variable.dtype()}}, "",
                    variable.shape().ToShape());
}

Output CollectiveReplicas::Agree(SourceLine line) {
  const CallerLine source(program_, line);
  const auto scope = program_.DeviceFunctionScope(Devices());
  const auto names = program_.NameScope("agree");
  for (const Variable& variable : program_.globals()) {
    if (variable.shape().fully_known()) continue;
    program_.Fail(InvalidArgument("collective replicas: the shape of variable '", variable.name(),
                                  "' must be fully known, is ", variable.shape().ToString()));
    return {&program_, -1, 0};
  }
  if (options_.group != nullptr) return AgreeInGroup();
  Outputs ops;
  for (const Variable& variable : program_.globals()) {
    const int64_t instance = NewInstance();
    ops.push_back(is_chief() ? Send(variable, instance)
                             : variable.Assign(Receive(variable, instance)));
  }
  return program_.Group(ops, "agreed");
}

// Adds the ops that send, receive and drop the values, because the group chooses at run time which
// of them a worker runs.
Output CollectiveReplicas::AgreeInGroup() {
  Outputs sent, received, dropped;
  for (const Variable& variable : program_.globals()) {
    const int64_t instance = NewInstance();
    sent.push_back(Send(variable, instance));
    received.push_back(variable.Assign(Receive(variable, instance)));
    dropped.push_back(Receive(variable, instance));
  }
  const Output receive = program_.Group(received, "receive");
  options_.group->SetAgree(program_.Group(sent, "send"), receive, program_.Group(dropped, "drop"));
  return receive;
}

Output CollectiveReplicas::Barrier(SourceLine line) {
  const CallerLine source(program_, line);
  const auto scope = program_.DeviceFunctionScope(Devices());
  return AllReduce(Constant(program_, Tensor::Scalar<int32_t>(1)), "Id", "barrier");
}

}  // namespace penstock::client
