// SPDX-License-Identifier: Apache-2.0
//
// Fills and empties the input slots and the outputs of one node in place. Inline, because it runs
// for every node. Private to this folder.
#pragma once

#include <memory>
#include <utility>

#include "core/base/status.h"
#include "core/runtime/iteration.h"

namespace penstock {

// Puts `value` into an empty tensor, without the cost of releasing an old value.
inline void Fill(Tensor* empty, Tensor&& value) { std::construct_at(empty, std::move(value)); }
inline void Fill(Tensor* empty, const Tensor& value) { std::construct_at(empty, value); }

inline void Empty(Tensor* tensor) {
  std::destroy_at(tensor);
  std::construct_at(tensor);
}

inline void EmptyAll(Tensor* tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) Empty(&tensors[i]);
}

// Empties the node's input slots. Call this before the outputs are passed on: if an output shares
// its buffer with an input, its consumer can then be the buffer's only owner and write in place.
inline void ReleaseInputs(Iteration& it, const Executable::Item& item) {
  EmptyAll(&it.inputs[item.first_input], item.num_inputs);
}

// Returns an Internal error that says that the kernel left output `i` without a value, or with a
// value of the wrong type `found`.
Status WrongOutputError(const Executable::Item& item, uint32_t i, DType found);

// Returns WrongOutputError for an output that does not have its type in the graph, or that has no
// value although it must not be dead; else OK.
inline Status CheckOutputs(const Executable::Item& item, const Tensor* outputs) {
  for (uint32_t i = 0; i < item.num_outputs; ++i) {
    const DType found = outputs[i].dtype();
    if (found == item.output_dtypes[i]) continue;
    if (found == DType::kInvalid && (item.special & Executable::kMayBeDead) != 0) continue;
    return WrongOutputError(item, i, found);
  }
  return OkStatus();
}

}  // namespace penstock
