// SPDX-License-Identifier: Apache-2.0
//
// BatcherKernel: the base of the kernels of Batch and BatchFunction: finds the Batcher that nodes
// with the same container and shared_name share, and makes the request of one execution.
// SharedName: where the resource of a node is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/op/kernel.h"
#include "kernels/batching/batcher.h"

namespace penstock {

struct SharedName {
  std::string container, name;
  // A node without a shared_name has a resource of its own, in each session.
  Status Init(const KernelInit& node);
};

class BatcherKernel : public AsyncKernel {
 protected:
  // Reads container, shared_name and batching_queue.
  Status InitShared(const KernelInit& node);
  StatusOr<std::shared_ptr<Batcher>> FindBatcher(const KernelContext& ctx,
                                                 const BatchOptions& options) const;
  // Returns a request of the first `num_inputs` inputs; its `deliver` sets the outputs and calls
  // `done`. InvalidArgument unless all inputs have equally many rows.
  StatusOr<std::shared_ptr<Batcher::Request>> MakeRequest(KernelContext& ctx, int num_inputs) const;
  // Adds the request; `done` is called at its end.
  static void AddTo(Batcher& batcher, std::shared_ptr<Batcher::Request> request, KernelContext& ctx,
                    Done done);

 private:
  SharedName shared_;
  std::string queue_;
};

// Returns input `i` of all parts as one tensor of options.PaddedRows(batch.rows) rows.
// InvalidArgument if it needs padding but has no row to repeat.
StatusOr<Tensor> JoinInputs(const Batcher::Batch& batch, int i, const BatchOptions& options);

}  // namespace penstock
