// SPDX-License-Identifier: Apache-2.0
//
// HandleKernel: the kernel of an op that finds or makes a resource and hands out its handle, by
// either front (a resource handle, or a TensorFlow-1 ref edge).
//
// A resource is shared by everybody who says its shared_name. Without one it is the node's own: on
// a server, of the node in one session (core/op/private_attrs.h).
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
  // Returns TypeName() of the resource. Lives for ever.
  virtual const char* Type() const = 0;
  virtual StatusOr<std::shared_ptr<Resource>> Make(KernelContext& ctx) const = 0;
  // Whether a resource of that type, which another node may have made, is what this node says.
  virtual Status Check(const Resource& resource) const { return OkStatus(); }

  const std::string& resource_name() const { return name_; }

 private:
  std::string container_, name_;
  bool is_ref_ = false;
  Mutex mu_;
  Tensor handle_ ABSL_GUARDED_BY(mu_);  // of the last step
};

// The resource of handle input i as type R.
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

// Ops that wait have a timeout_ms that must be -1, here as in TensorFlow, whose error this is:
// InvalidArgument otherwise. A step's own deadline ends its waits.
Status RequireNoTimeout(const KernelInit& node);

// Shapes of the handles themselves: a scalar, or the two strings that a ref edge stands for.
Status ResourceHandleShape(ShapeScope& s);
Status RefHandleShape(ShapeScope& s);

// The two forms of one op: "resource" or Ref("string").
enum class HandleForm { kRef, kResource };
ArgType HandleType(HandleForm form);

}  // namespace penstock
