// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/variable_inputs.h"

#include <typeinfo>
#include <utility>

#include "core/base/error_origin.h"
#include "core/op/variable.h"

namespace penstock {
namespace {

StatusOr<Tensor> ReadVariable(const Tensor& reference) {
  Resource* const resource = reference.scalar<ResourceHandle>().resource.get();
  // Cheaper than dynamic_cast, and equivalent, because Variable is final.
  if (resource == nullptr || typeid(*resource) != typeid(Variable)) {
    return Internal("the reference to '", reference.scalar<ResourceHandle>().name,
                    "' does not lead to a variable");
  }
  return static_cast<const Variable*>(resource)->Read();
}

}  // namespace

Status ReadVariables(Iteration& it, const Executable::Item& item) {
  const Executable::Detail& detail = it.executable.detail(item);
  for (const uint32_t i : detail.variable_inputs) {
    Tensor& input = it.inputs[item.first_input + i];
    // Skip dead inputs, and inputs that were read before, when the node had to wait for copies.
    if (input.dtype() != DType::kResource) continue;
    StatusOr<Tensor> read = ReadVariable(input);
    // Do not name nodes that the compiler added: the author of the graph does not know them.
    if (!read.ok() && item.node->op().internal()) {
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

}  // namespace penstock
