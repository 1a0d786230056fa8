// SPDX-License-Identifier: Apache-2.0
//
// Inputs that need something done before a kernel may see them: reading the variable behind a
// reference, copying between the host and the device.
#include <typeinfo>
#include <utility>

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

Status Execution::ReadVariables(const Item& item) {
  const Program::Detail& detail = program_.detail(item);
  for (const uint32_t i : detail.variable_inputs) {
    Tensor& input = root_.inputs[item.first_input + i];
    // Dead inputs have nothing to read, and a node that waited for copies has been here before.
    if (input.dtype() != DType::kResource) continue;
    ASSIGN_OR_RETURN(Tensor value, ReadVariable(input));
    const DType wanted = item.node->input_type(i).dtype;
    if (value.dtype() != wanted) {
      return Internal("input ", i, " must be ", Name(wanted), ", the variable behind it holds ",
                      Name(value.dtype()));
    }
    input = std::move(value);
  }
  return OkStatus();
}

bool Execution::CopyInputs(const Item& item) {
  const Program::Detail& detail = program_.detail(item);
  if (detail.wait < 0) {
    for (const uint32_t i : detail.inputs_to_device) StartCopy(item, i, /*to_host=*/false);
    return !stopped_.load(std::memory_order_relaxed);
  }
  Wait& wait = waits_[detail.wait];
  if (std::exchange(wait.copied, false)) return true;
  for (const uint32_t i : detail.inputs_to_device) StartCopy(item, i, /*to_host=*/false);
  AddActive();
  wait.in_flight.store(true, std::memory_order_relaxed);
  // One more than there are copies, so that none is the last before all have been started.
  wait.copies_left.store(static_cast<uint32_t>(detail.inputs_to_host.size()) + 1,
                         std::memory_order_relaxed);
  for (const uint32_t i : detail.inputs_to_host) StartCopy(item, i, /*to_host=*/true);
  CopyEnded(item, OkStatus());
  return false;
}

void Execution::StartCopy(const Item& item, uint32_t i, bool to_host) {
  Tensor& input = root_.inputs[item.first_input + i];
  Tensor copy;
  if (to_host) {
    const auto ended = [this, &item](const Status& status) { CopyEnded(item, status); };
    if (!input.valid()) return ended(OkStatus());  // dead
    device_.CopyToHost(input, &copy, Done(ended));
  } else {
    if (!input.valid()) return;
    AddActive();
    device_.CopyFromHost(input, &copy, Done([this, &item](const Status& status) {
                           if (!status.ok()) Fail(item, status);
                           Leave(/*from_runner=*/false);
                         }));
  }
  input = std::move(copy);
}

void Execution::CopyEnded(const Item& item, const Status& status) {
  if (!status.ok()) Fail(item, status);
  Wait& wait = waits_[program_.detail(item).wait];
  if (wait.copies_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  wait.in_flight.store(false, std::memory_order_relaxed);
  if (!stopped_.load(std::memory_order_relaxed)) {
    wait.copied = true;
    const uint32_t node = IndexOf(item);
    if (Ready* const here = ReadyHere(); here != nullptr) {
      here->cheap.push_back(node);
    } else {
      Share({&node, 1});
    }
  }
  Leave(/*from_runner=*/false);
}

}  // namespace penstock
