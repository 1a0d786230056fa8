// SPDX-License-Identifier: Apache-2.0
//
// Fill, ZerosLike and OnesLike on the GPU, compiled per element size.
#include <cstring>

#include "core/op/registry.h"
#include "kernels/array/arguments.h"
#include "kernels/array/one.h"
#include "kernels/engine/cuda_launch.cuh"

namespace penstock {
namespace {

template <class Element>
__global__ void FillLoop(Element value, Element* out, int64_t count) {
  FOR_EACH_ON_DEVICE(i, count) { out[i] = value; }
}

template <class Element>
Status Launch(const void* value, Tensor& output, void* stream) {
  Element element;
  memcpy(&element, value, sizeof element);
  FillLoop<<<GridFor(output.num_elements()), kThreadsPerBlock, 0, CudaStream(stream)>>>(
      element, static_cast<Element*>(output.mutable_raw_data()), output.num_elements());
  return LaunchStatus();
}

// `value` is in host memory.
Status FillOnDevice(const void* value, Tensor& output, void* stream) {
  if (output.num_elements() == 0) return OkStatus();
  switch (SizeOf(output.dtype())) {
    case 1:
      return Launch<uint8_t>(value, output, stream);
    case 2:
      return Launch<uint16_t>(value, output, stream);
    case 4:
      return Launch<uint32_t>(value, output, stream);
    case 8:
      return Launch<uint64_t>(value, output, stream);
    case 16:
      return Launch<uint4>(value, output, stream);
    default:
      return Internal("no elements of ", SizeOf(output.dtype()), " bytes");
  }
}

class FillKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(1);
    if (value.rank() != 0) {
      return InvalidArgument("value must be a scalar, has shape ", value.shape().ToString());
    }
    ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(0), "dims"));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    return FillOnDevice(value.raw_data(), *output, ctx.stream());
  }
};

class ZerosLikeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    Tensor* output;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, shape, &output));
    if (output->num_elements() == 0) return OkStatus();
    const cudaError_t error =
        cudaMemsetAsync(output->mutable_raw_data(), 0, output->bytes(), CudaStream(ctx.stream()));
    return error == cudaSuccess ? OkStatus() : Internal("ZerosLike: ", cudaGetErrorString(error));
  }
};

class OnesLikeKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    Tensor* output;
    RETURN_IF_ERROR(ctx.ForwardOrAllocate(0, 0, shape, &output));
    const ElementBytes one = One(output->dtype());
    return FillOnDevice(one.bytes, *output, ctx.stream());
  }
};

// Returns kernels for every type whose elements can be in GPU memory.
std::vector<KernelDef> ForPlainTypes(const char* op, const DTypes& types,
                                     std::vector<std::string> host_args,
                                     std::unique_ptr<Kernel> (*make)()) {
  std::vector<KernelDef> kernels;
  for (const DType dtype : types) {
    if (!IsPlain(dtype)) continue;
    kernels.push_back({.op = op, .types = {{"T", dtype}}, .host_args = host_args, .make = make});
  }
  return kernels;
}

const KernelDeclaration fill([] {
  return ForPlainTypes("Fill", kAllTypes, {"dims", "value"}, Make<FillKernel>);
});
const KernelDeclaration zeros_like([] {
  return ForPlainTypes("ZerosLike", kAllTypes, {}, Make<ZerosLikeKernel>);
});
const KernelDeclaration ones_like([] {
  DTypes types = kNumber;
  types.push_back(DType::kBool);
  return ForPlainTypes("OnesLike", types, {}, Make<OnesLikeKernel>);
});

}  // namespace
}  // namespace penstock
