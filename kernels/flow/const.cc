// SPDX-License-Identifier: Apache-2.0
//
// Const: a value that is part of the graph.
#include <mutex>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#if defined(PENSTOCK_CUDA)
#include <cuda_runtime.h>
#endif

namespace penstock {
namespace {

class ConstKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("value", &value_));
    DType dtype;
    RETURN_IF_ERROR(node.Attr("dtype", &dtype));
    if (value_.dtype() == dtype) return OkStatus();
    return InvalidArgument("node '", node.name, "': attribute dtype is ", Name(dtype),
                           ", attribute value is ", Name(value_.dtype()));
  }
  // The outputs of all steps share the buffer of the value. A kernel that writes to a shared buffer
  // makes a copy first.
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, value_);
    return OkStatus();
  }
  int64_t CostNanos() const override { return 20; }

 protected:
  Tensor value_;
};

Status ConstShape(ShapeScope& s) {
  s.set_output(0, s.attr<Tensor>("value").shape());
  return OkStatus();
}

OP(Const) {
  return {
      .doc = "Returns the tensor `value`.",
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", kAnyType}},
      .attrs = {{"value", Tensors{}}},
      .shape = ConstShape,
      .gradient = NoGradient,
      .examples = {{.attrs = {{"dtype", DType::kFloat}, {"value", Tensor::Scalar<float>(1)}}}},
      .is_constant = true,
  };
}
KERNEL_ANY_TYPE(Const, ConstKernel);

#if defined(PENSTOCK_CUDA)
// The first step copies the value to the device; later steps share that copy. int32 stays on the
// host, because small integers are sizes and axes, which kernels read on the host.
class ConstOnGpu final : public ConstKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    std::call_once(once_, [&] { status_ = Upload(ctx); });
    if (!status_.ok()) return status_;
    ctx.SetOutput(0, on_device_);
    return OkStatus();
  }

 private:
  Status Upload(KernelContext& ctx) {
    if (!IsPlain(value_.dtype())) {
      return InvalidArgument("a ", Name(value_.dtype()), " cannot live on a GPU");
    }
    ASSIGN_OR_RETURN(on_device_, Tensor::Make(ctx.allocator(), value_.dtype(), value_.shape()));
    const cudaError_t error =
        cudaMemcpyAsync(on_device_.mutable_raw_data(), value_.raw_data(), value_.bytes(),
                        cudaMemcpyHostToDevice, static_cast<cudaStream_t>(ctx.stream()));
    if (error == cudaSuccess) return OkStatus();
    return Internal("copying a constant to the GPU: ", cudaGetErrorString(error));
  }

  std::once_flag once_;
  Status status_;
  Tensor on_device_;
};

std::vector<KernelDef> GpuConstKernels() {
  std::vector<KernelDef> kernels;
  for (const DType dtype : kAnyType) {
    const bool on_host = dtype == DType::kInt32 || !IsPlain(dtype);
    KernelDef def{.op = "Const", .device = "GPU", .types = {{"dtype", dtype}}};
    if (on_host) def.host_args = {"output"};
    def.make = on_host ? Make<ConstKernel> : Make<ConstOnGpu>;
    kernels.push_back(def);
  }
  return kernels;
}
const KernelDeclaration gpu_const_kernels(GpuConstKernels);
#endif

}  // namespace
}  // namespace penstock
