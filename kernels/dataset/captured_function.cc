// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/captured_function.h"

#include <utility>

#include "core/functions/embedded_functions.h"

namespace penstock {

StatusOr<std::shared_ptr<Callable::Call>> IteratorCalls::Of(const Callable& callable) {
  MutexLock lock(mu_);
  std::shared_ptr<Callable::Call>& call = calls_[&callable];
  if (call == nullptr) {
    ASSIGN_OR_RETURN(call, callable.NewCall());
  }
  return call;
}

void IteratorCalls::Clear() {
  std::map<const Callable*, std::shared_ptr<Callable::Call>> dropped;
  MutexLock lock(mu_);
  dropped.swap(calls_);
}

StatusOr<ElementCall> ElementCall::New(const IteratorContext& ctx,
                                       const CapturedFunction& function) {
  std::shared_ptr<Callable::Call> call;
  if (ctx.calls != nullptr) {
    ASSIGN_OR_RETURN(call, ctx.calls->Of(function.callable()));
  } else {
    ASSIGN_OR_RETURN(call, function.callable().NewCall());
  }
  return ElementCall(function, std::move(call));
}

Status ElementCall::Run(const IteratorContext& ctx, Element args, Element* results) const {
  args.insert(args.end(), function_.captured().begin(), function_.captured().end());
  return call_->Run(ctx.place(), args, results);
}

void ElementCall::RunAsync(const IteratorContext& ctx, Element args, Callable::Ended ended) const {
  args.insert(args.end(), function_.captured().begin(), function_.captured().end());
  call_->RunAsync(ctx.place(), std::move(args), std::move(ended));
}

StatusOr<Tensor> ElementCall::Scalar(const IteratorContext& ctx, Element args, DType dtype) const {
  Element results;
  RETURN_IF_ERROR(Run(ctx, std::move(args), &results));
  if (results.size() == 1 && results[0].dtype() == dtype && results[0].num_elements() == 1) {
    return std::move(results[0]);
  }
  return InvalidArgument("function '", function_.callable().name(), "' must return a scalar ",
                         Name(dtype), ".");
}

StatusOr<bool> ElementCall::Test(const IteratorContext& ctx, Element args) const {
  ASSIGN_OR_RETURN(const Tensor result, Scalar(ctx, std::move(args), DType::kBool));
  return result.scalar<bool>();
}

StatusOr<int64_t> ElementCall::Number(const IteratorContext& ctx, Element args) const {
  ASSIGN_OR_RETURN(const Tensor result, Scalar(ctx, std::move(args), DType::kInt64));
  return result.scalar<int64_t>();
}

StatusOr<DatasetPtr> ElementCall::NewDataset(const IteratorContext& ctx, Element args) const {
  Element results;
  RETURN_IF_ERROR(Run(ctx, std::move(args), &results));
  if (results.size() != 1 || results[0].dtype() != DType::kVariant || results[0].rank() != 0) {
    return InvalidArgument("Function must return a single scalar of dtype DT_VARIANT.");
  }
  return DatasetOf(results[0]);
}

Status FunctionAttr::Init(const KernelInit& node, const char* attr, const char* captured_types) {
  RETURN_IF_ERROR(node.Attr(attr, &function_));
  if (captured_types != nullptr) {
    std::vector<DType> types;
    RETURN_IF_ERROR(node.Attr(captured_types, &types));
    num_captured_ = static_cast<int>(types.size());
  }
  // If the graph contains no such function, the attribute is missing. Compile reports that.
  return node.attrs.contains(kFunctionsAttr) ? node.Attr(kFunctionsAttr, &library_) : OkStatus();
}

StatusOr<std::shared_ptr<const Callable>> FunctionAttr::Compile(const KernelContext& ctx) const {
  MutexLock lock(mu_);
  if (callable_ == nullptr) {
    ASSIGN_OR_RETURN(callable_, Callable::Make({.library = library_,
                                                .function = function_,
                                                .device = ctx.device_name(),
                                                .threads = ctx.step().threads,
                                                .env = ctx.step().env}));
  }
  return callable_;
}

StatusOr<CapturedFunction> FunctionAttr::Capture(const KernelContext& ctx, int first) const {
  ASSIGN_OR_RETURN(std::shared_ptr<const Callable> callable, Compile(ctx));
  std::vector<Tensor> captured;
  for (int i = first; i < first + num_captured_; ++i) captured.push_back(ctx.input(i));
  return CapturedFunction(std::move(callable), std::move(captured));
}

}  // namespace penstock
