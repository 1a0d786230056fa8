// SPDX-License-Identifier: Apache-2.0
//
// HandleKernel: the kernel of an op that finds or creates a resource and outputs its handle, either
// as a resource handle or as a TensorFlow 1 ref edge.
//
// Nodes with the same shared_name share a resource. Without a shared_name, only this node uses the
// resource; on a server, only this node in one session (core/op/private_attrs.h).
//
// Threads: concurrent steps may call Compute of one kernel; they get the same resource.
//
// The other functions: helpers of the ops that return or take such a handle.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/op/kernel.h"
#include "core/op/resource.h"
#include "core/op/shape_scope.h"
#include "kernels/data/blocking.h"

namespace penstock {

class HandleKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override;
  Status Compute(KernelContext& ctx) final;

 protected:
  // Returns TypeName() of the resource. The string lives forever.
  virtual const char* Type() const = 0;
  virtual StatusOr<std::shared_ptr<Resource>> Make(KernelContext& ctx) const = 0;
  // Checks that a resource of type Type(), which another node may have made, fits this node's
  // attributes.
  virtual Status Check(const Resource& resource) const { return OkStatus(); }

  const std::string& resource_name() const { return name_; }

 private:
  std::string container_, name_;
  bool is_ref_ = false;
  Mutex mu_;
  Tensor handle_ ABSL_GUARDED_BY(mu_);  // handle and resource of the last step
};

// Returns the resource whose handle is input i, as type R. InvalidArgument unless the input is one
// handle; otherwise errors as from ResolveHandleAs.
template <class R>
StatusOr<std::shared_ptr<R>> ResourceInput(const KernelContext& ctx, int i) {
  const Tensor& input = ctx.input(i);
  if (input.dtype() != DType::kResource || input.num_elements() != 1) {
    return InvalidArgument("input ", i, " must be one handle, is ", Name(input.dtype()),
                           input.shape().ToString());
  }
  return ResolveHandleAs<R>(input.scalar<ResourceHandle>(), ctx.resources());
}

inline Caller CallerOf(const KernelContext& ctx) { return {ctx.step().cancellation, ctx.origin()}; }

// InvalidArgument, with TensorFlow's text, unless the node's timeout_ms is -1. (The step's deadline
// limits how long the node waits.)
Status RequireNoTimeout(const KernelInit& node);

// Shape functions of ops that output a handle: a scalar, or the two strings of a ref edge.
Status ResourceHandleShape(ShapeScope& s);
Status RefHandleShape(ShapeScope& s);

// The two forms of a handle: the type "resource", or Ref("string").
enum class HandleForm { kRef, kResource };
ArgType HandleType(HandleForm form);

}  // namespace penstock
