// SPDX-License-Identifier: Apache-2.0
//
// BatcherKernel: the base of the kernels of Batch and BatchFunction: finds the Batcher that nodes
// with the same container and shared_name share, and makes the request of one execution.
// SharedName: the container and the name of the resource that a node uses.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/op/kernel.h"
#include "kernels/batching/batcher.h"

namespace penstock {

struct SharedName {
  std::string container, name;
  // Reads container and shared_name. A node without a shared_name has a resource of its own in each
  // session.
  Status Init(const KernelInit& node);
};

class BatcherKernel : public AsyncKernel {
 protected:
  // Reads container, shared_name and batching_queue.
  Status InitShared(const KernelInit& node);
  StatusOr<std::shared_ptr<Batcher>> FindBatcher(const KernelContext& ctx,
                                                 const BatchOptions& options) const;
  // Returns a request with the first `num_inputs` inputs. InvalidArgument unless all of them have
  // the same number of rows.
  StatusOr<std::shared_ptr<Batcher::Request>> MakeRequest(KernelContext& ctx, int num_inputs) const;
  // Adds the request to the batcher. When the request ends, sets the outputs and calls `done`.
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
