// SPDX-License-Identifier: Apache-2.0
//
// KeyedInput: base of iterators that group the elements of their input by key. Captures: makes the
// CapturedFunctions of an op with several functions from the op's inputs.
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/dataset/captured_function.h"
#include "kernels/dataset/dataset.h"

namespace penstock {

class KeyedInput : public UnaryIterator {
 public:
  KeyedInput(IteratorPtr input, ElementCall key)
      : UnaryIterator(std::move(input)), key_(std::move(key)) {}

 protected:
  // Reads the next element and its key. Returns false, and sets ended_, at the end of the input.
  StatusOr<bool> ReadKeyed(const IteratorContext& ctx, Element* next, int64_t* key) {
    bool end = false;
    RETURN_IF_ERROR(input_->GetNext(ctx, next, &end));
    ended_ = end;
    if (end) return false;
    ASSIGN_OR_RETURN(*key, key_.Number(ctx, *next));
    return true;
  }

  const ElementCall key_;
  bool ended_ = false;
};

class Captures {
 public:
  // The first captured tensor is input `first`. Borrows `ctx`.
  Captures(const KernelContext& ctx, int first) : ctx_(ctx), next_(first) {}
  // Returns a function with its captured tensors. Call it for the functions in the order in which
  // their captured tensors are inputs.
  StatusOr<CapturedFunction> Take(const FunctionAttr& function) {
    return function.Capture(ctx_, std::exchange(next_, next_ + function.num_captured()));
  }

 private:
  const KernelContext& ctx_;
  int next_;
};

}  // namespace penstock
