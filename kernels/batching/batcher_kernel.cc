// SPDX-License-Identifier: Apache-2.0
#include "kernels/batching/batcher_kernel.h"

#include <utility>

#include "core/op/private_attrs.h"
#include "kernels/batching/batch_rows.h"

namespace penstock {

Status SharedName::Init(const KernelInit& node) {
  RETURN_IF_ERROR(node.Attr("container", &container));
  RETURN_IF_ERROR(node.Attr("shared_name", &name));
  if (!name.empty()) return OkStatus();
  name = node.name;
  if (!node.attrs.contains(kPrivateContainerAttr)) return OkStatus();
  return node.Attr(kPrivateContainerAttr, &container);
}

Status BatcherKernel::InitShared(const KernelInit& node) {
  RETURN_IF_ERROR(shared_.Init(node));
  return node.Attr("batching_queue", &queue_);
}

StatusOr<std::shared_ptr<Batcher>> BatcherKernel::FindBatcher(const KernelContext& ctx,
                                                              const BatchOptions& options) const {
  const auto make = [&]() -> StatusOr<std::shared_ptr<Resource>> {
    return Batcher::Make(shared_.name, options, ctx.threads(), *ctx.step().env);
  };
  ASSIGN_OR_RETURN(const std::shared_ptr<Resource> found,
                   ctx.resources().LookupOrCreate(shared_.container, shared_.name, Batcher::kType,
                                                  make, ctx.origin()));
  auto batcher = std::dynamic_pointer_cast<Batcher>(found);
  if (batcher == nullptr) return Internal("'", shared_.name, "' is not a Batcher");
  if (batcher->options() == options) return batcher;
  return InvalidArgument("batcher '", shared_.name, "' exists already, with ",
                         batcher->options().ToString(), "; this node says ", options.ToString());
}

StatusOr<std::shared_ptr<Batcher::Request>> BatcherKernel::MakeRequest(KernelContext& ctx,
                                                                       int num_inputs) const {
  auto request = std::make_shared<Batcher::Request>();
  for (int i = 0; i < num_inputs; ++i) {
    const Tensor& input = ctx.input(i);
    if (input.rank() == 0) {
      return InvalidArgument("Batching input tensors must have at least one dimension; input ", i,
                             " has shape []");
    }
    if (input.dim(0) != ctx.input(0).dim(0)) {
      return InvalidArgument("Batching input tensors supplied in a given op invocation must have ",
                             "equal 0th-dimension size; input 0 has shape ",
                             ctx.input(0).shape().ToString(), ", input ", i, " ",
                             input.shape().ToString());
    }
    request->inputs.push_back(input);
  }
  request->queue = queue_;
  request->rows = request->inputs.front().dim(0);
  request->id = static_cast<int64_t>(ctx.step().env->RandomU64());
  request->cancellation = ctx.step().cancellation;
  request->origin = ctx.origin();
  return request;
}

void BatcherKernel::AddTo(Batcher& batcher, std::shared_ptr<Batcher::Request> request,
                          KernelContext& ctx, Done done) {
  request->deliver = [&ctx, done = std::move(done)](Status status,
                                                    std::vector<Tensor> results) mutable {
    for (size_t i = 0; i < results.size(); ++i) {
      ctx.SetOutput(static_cast<int>(i), std::move(results[i]));
    }
    std::move(done)(std::move(status));
  };
  batcher.Add(std::move(request));
}

StatusOr<Tensor> JoinInputs(const Batcher::Batch& batch, int i, const BatchOptions& options) {
  std::vector<Tensor> parts;
  Tensor padding;
  for (const Batcher::Part& part : batch.parts) {
    parts.push_back(part.Rows(i));
    if (!padding.valid() && part.rows > 0) padding = parts.back().Slice(0, 1);
  }
  const int64_t rows = options.PaddedRows(batch.rows);
  if (rows > batch.rows && !padding.valid()) {
    return InvalidArgument("Cannot use an empty tensor with zero rows as padding when batching. ",
                           "(Input ", i, " got shape ", parts.front().shape().ToString(), ".)");
  }
  return JoinRows(parts, rows, padding.valid() ? &padding : nullptr);
}

}  // namespace penstock
