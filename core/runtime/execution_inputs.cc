// SPDX-License-Identifier: Apache-2.0
//
// Inputs that need something done before a kernel may see them: reading the variable behind a
// reference, copying between the host and the device.
#include <typeinfo>
#include <utility>

#include "core/base/error_origin.h"
#include "core/op/variable.h"
#include "core/runtime/execution.h"

namespace penstock {
namespace {

StatusOr<Tensor> ReadVariable(const Tensor& reference) {
  Resource* const resource = reference.scalar<ResourceHandle>().resource.get();
  // Cheaper than dynamic_cast, and as good: Variable is final.
  if (resource == nullptr || typeid(*resource) != typeid(Variable)) {
    return Internal("the reference to '", reference.scalar<ResourceHandle>().name,
                    "' does not lead to a variable");
  }
  return static_cast<const Variable*>(resource)->Read();
}

}  // namespace

Status Execution::ReadVariables(Iteration& it, const Item& item) {
  const Program::Detail& detail = program_.detail(item);
  for (const uint32_t i : detail.variable_inputs) {
    Tensor& input = it.inputs[item.first_input + i];
    // Dead inputs have nothing to read, and a node that waited for copies has been here before.
    if (input.dtype() != DType::kResource) continue;
    StatusOr<Tensor> read = ReadVariable(input);
    // Nodes that the compiler made say nothing to whoever wrote the graph.
    if (!read.ok() && item.node->op_name()[0] == '_') {
      return AtNode(read.status(), item.node->input(i).node->name());
    }
    ASSIGN_OR_RETURN(Tensor value, std::move(read));
    const DType wanted = item.node->input_type(i).dtype;
    if (value.dtype() != wanted) {
      return Internal("input ", i, " must be ", Name(wanted), ", the variable behind it holds ",
                      Name(value.dtype()));
    }
    input = std::move(value);
  }
  return OkStatus();
}

bool Execution::CopyInputs(Iteration& it, const Item& item) {
  const Program::Detail& detail = program_.detail(item);
  Tensor* const inputs = &it.inputs[item.first_input];
  if (detail.wait < 0) {
    for (const uint32_t i : detail.inputs_to_device) CopyToDevice(item, inputs[i]);
    return !stopped_.load(std::memory_order_relaxed);
  }
  Wait& wait = it.waits[detail.wait];
  if (std::exchange(wait.copied, false)) return true;
  for (const uint32_t i : detail.inputs_to_device) CopyToDevice(item, inputs[i]);
  AddActive();
  Hold(it, 1);
  wait.in_flight.store(true, std::memory_order_relaxed);
  // One more than there are copies, so that none is the last before all have been started.
  wait.copies_left.store(static_cast<uint32_t>(detail.inputs_to_host.size()) + 1,
                         std::memory_order_relaxed);
  for (const uint32_t i : detail.inputs_to_host) CopyToHost(wait, inputs[i]);
  CopyEnded(wait, OkStatus());
  return false;
}

void Execution::CopyToDevice(const Item& item, Tensor& input) {
  if (!input.valid()) return;  // dead
  Tensor copy;
  AddActive();
  device_.CopyFromHost(input, &copy, Done([this, &item](const Status& status) {
                         if (!status.ok()) Fail(item, status);
                         Leave(/*from_runner=*/false);
                       }));
  input = std::move(copy);
}

void Execution::CopyToHost(Wait& wait, Tensor& input) {
  const auto ended = [&wait](const Status& status) { wait.execution->CopyEnded(wait, status); };
  if (!input.valid()) return ended(OkStatus());  // dead
  Tensor copy;
  device_.CopyToHost(input, &copy, Done(ended));
  input = std::move(copy);
}

void Execution::CopyEnded(Wait& wait, const Status& status) {
  if (!status.ok()) Fail(*wait.item, status);
  if (wait.copies_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  wait.in_flight.store(false, std::memory_order_relaxed);
  Iteration& it = *wait.iteration;
  if (!stopped_.load(std::memory_order_relaxed)) {
    wait.copied = true;
    const uint32_t node = IndexOf(it, *wait.item);
    if (Ready* const here = ReadyHere(); here != nullptr) {
      Push(it, node, *here);
      Release(it, *here);
    } else {
      const Task task{&it, node};  // holds what the wait held
      Share({&task, 1});
    }
  }
  Leave(/*from_runner=*/false);
}

}  // namespace penstock
