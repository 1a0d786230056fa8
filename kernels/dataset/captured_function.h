// SPDX-License-Identifier: Apache-2.0
//
// CapturedFunction: a function that an op calls for elements, with the tensors that it captured;
// ElementCall: one iterator's calls of it. FunctionAttr: where a kernel gets it from.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/callable/callable.h"
#include "core/op/kernel.h"
#include "kernels/dataset/dataset.h"

namespace penstock {

// A value: thread-safe, immutable.
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

// Thread-safe.
class ElementCall {
 public:
  static StatusOr<ElementCall> New(const CapturedFunction& function);

  // Captured tensors come after `args`.
  Status Run(const IteratorContext& ctx, Element args, Element* results) const;
  void RunAsync(const IteratorContext& ctx, Element args, Callable::Ended ended) const;
  // For functions with one result, which is a bool scalar. InvalidArgument where it is not.
  StatusOr<bool> Test(const IteratorContext& ctx, Element args) const;
  StatusOr<int64_t> Number(const IteratorContext& ctx, Element args) const;
  // For functions with one result, which is a dataset.
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
  // `captured_types`: the attribute with the types of what the function captured; null: nothing.
  Status Init(const KernelInit& node, const char* attr, const char* captured_types);
  // How many tensors it captured.
  int num_captured() const { return num_captured_; }
  // Inputs `first` and on are what it captured.
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
