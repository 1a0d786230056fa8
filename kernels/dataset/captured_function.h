// SPDX-License-Identifier: Apache-2.0
//
// CapturedFunction: a function that an op calls for elements, together with the tensors that the
// function captures; ElementCall: one iterator's calls of such a function; IteratorCalls: the state
// that the calls of one pipeline share; FunctionAttr: the node attribute that names the function.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/callable/callable.h"
#include "core/op/kernel.h"
#include "kernels/dataset/dataset.h"

namespace penstock {

// Immutable, thread-safe.
class CapturedFunction {
 public:
  CapturedFunction(std::shared_ptr<const Callable> callable, std::vector<Tensor> captured)
      : callable_(std::move(callable)), captured_(std::move(captured)) {}
  const Callable& callable() const { return *callable_; }
  const std::vector<Tensor>& captured() const { return captured_; }

 private:
  std::shared_ptr<const Callable> callable_;
  std::vector<Tensor> captured_;
};

// The state of all functions that a pipeline calls; it begins when the pipeline's iterator is made.
// RepeatDataset and similar datasets make a new iterator of their input for each round. These
// iterators share the state, so that a random op continues its stream. Thread-safe.
class IteratorCalls {
 public:
  StatusOr<std::shared_ptr<Callable::Call>> Of(const Callable& callable);
  void Clear();

 private:
  Mutex mu_;
  // Each call owns its callable.
  std::map<const Callable*, std::shared_ptr<Callable::Call>> calls_ ABSL_GUARDED_BY(mu_);
};

// Thread-safe.
class ElementCall {
 public:
  // Returns a call that uses the state which `ctx.calls` holds for the function, or a state of its
  // own if `ctx.calls` is null.
  static StatusOr<ElementCall> New(const IteratorContext& ctx, const CapturedFunction& function);

  // Calls the function with `args`, followed by the captured tensors.
  Status Run(const IteratorContext& ctx, Element args, Element* results) const;
  void RunAsync(const IteratorContext& ctx, Element args, Callable::Ended ended) const;
  // Test and Number call a function whose only result is a bool or an int64 scalar. InvalidArgument
  // if the result is something else.
  StatusOr<bool> Test(const IteratorContext& ctx, Element args) const;
  StatusOr<int64_t> Number(const IteratorContext& ctx, Element args) const;
  // Calls a function whose only result is a dataset. InvalidArgument if the result is something
  // else.
  StatusOr<DatasetPtr> NewDataset(const IteratorContext& ctx, Element args) const;
  bool waits() const { return function_.callable().waits(); }

 private:
  ElementCall(const CapturedFunction& function, std::shared_ptr<Callable::Call> call)
      : function_(function), call_(std::move(call)) {}
  StatusOr<Tensor> Scalar(const IteratorContext& ctx, Element args, DType dtype) const;

  CapturedFunction function_;
  std::shared_ptr<Callable::Call> call_;
};

// A function attribute of a node. Thread-safe once initialised.
class FunctionAttr {
 public:
  // Reads the attribute `attr`. `captured_types` names the attribute with the types of the captured
  // tensors; null if the function captures nothing.
  Status Init(const KernelInit& node, const char* attr, const char* captured_types);
  // Returns the number of captured tensors.
  int num_captured() const { return num_captured_; }
  // Returns the function with its captured tensors, which are the inputs from `first` on. The first
  // call compiles the function, and returns an error if that fails; then the next call tries again.
  StatusOr<CapturedFunction> Capture(const KernelContext& ctx, int first) const;

 private:
  StatusOr<std::shared_ptr<const Callable>> Compile(const KernelContext& ctx) const;

  FunctionName function_;
  std::string library_;
  int num_captured_ = 0;
  mutable Mutex mu_;
  mutable std::shared_ptr<const Callable> callable_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock
