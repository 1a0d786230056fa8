// SPDX-License-Identifier: Apache-2.0
//
// _FilledConst: a large constant of one value (core/graph/graph_proto.cc). Each step fills it
// again, so it takes no memory between steps. Filling 16 MiB or more costs about as much as reading
// the same amount.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#if defined(PENSTOCK_CUDA)
#include <cuda_runtime.h>
#endif

namespace penstock {
namespace {

struct Wide {
  uint64_t low, high;
};

template <class Word>
void Fill(Scheduler& threads, const Tensor& value, Tensor* out) {
  const Word word = *static_cast<const Word*>(value.raw_data());
  Word* const words = static_cast<Word*>(out->mutable_raw_data());
  threads.ParallelFor(out->num_elements(), 0.1 * sizeof(Word), [&](int64_t begin, int64_t end) {
    std::fill(words + begin, words + end, word);
  });
}

class FilledConst : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("value", &value_));
    PartialShape shape;
    RETURN_IF_ERROR(node.Attr("shape", &shape));
    DType dtype;
    RETURN_IF_ERROR(node.Attr("dtype", &dtype));
    if (value_.dtype() != dtype) {
      return InvalidArgument("node '", node.name, "': attribute dtype is ", Name(dtype),
                             ", attribute value is ", Name(value_.dtype()));
    }
    if (value_.num_elements() != 1 || !IsPlain(dtype) || !shape.fully_known()) {
      return InvalidArgument("node '", node.name, "': attribute value must be one number, and ",
                             "attribute shape known, not ", shape.ToString());
    }
    ASSIGN_OR_RETURN(shape_, Shape::Make(shape.dims()));
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape_, &out));
    return FillOnHost(ctx, out);
  }

 protected:
  Status FillOnHost(KernelContext& ctx, Tensor* out) const {
    switch (SizeOf(value_.dtype())) {
      case 1:
        return Fill<uint8_t>(ctx.threads(), value_, out), OkStatus();
      case 2:
        return Fill<uint16_t>(ctx.threads(), value_, out), OkStatus();
      case 4:
        return Fill<uint32_t>(ctx.threads(), value_, out), OkStatus();
      case 8:
        return Fill<uint64_t>(ctx.threads(), value_, out), OkStatus();
      case 16:
        return Fill<Wide>(ctx.threads(), value_, out), OkStatus();
    }
    return Unimplemented("constants of type ", Name(value_.dtype()));
  }

  Tensor value_;
  Shape shape_;
};

OP(_FilledConst) {
  return {
      .doc = "Returns a tensor of `shape` in which every element is `value`.",
      .outputs = {{"output", "dtype"}},
      .types = {{"dtype", kAnyType}},
      .attrs = {{"value", Tensors{}}, {"shape", Shapes{}}},
      .shape =
          [](ShapeScope& s) {
            s.set_output(0, s.attr<PartialShape>("shape"));
            return OkStatus();
          },
      .gradient = NoGradient,
  };
}
KERNEL_ANY_TYPE(_FilledConst, FilledConst);

#if defined(PENSTOCK_CUDA)
class FilledConstOnGpu final : public FilledConst {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(Tensor on_host, Tensor::Make(CpuAllocator(), value_.dtype(), shape_));
    RETURN_IF_ERROR(FillOnHost(ctx, &on_host));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape_, &out));
    const auto stream = static_cast<cudaStream_t>(ctx.stream());
    cudaError_t error = cudaMemcpyAsync(out->mutable_raw_data(), on_host.raw_data(),
                                        on_host.bytes(), cudaMemcpyHostToDevice, stream);
    // Waits for the copy, because on_host must live until the copy has ended.
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
    if (error == cudaSuccess) return OkStatus();
    return Internal("copying a constant to the GPU: ", cudaGetErrorString(error));
  }
};

std::vector<KernelDef> GpuFilledConstKernels() {
  std::vector<KernelDef> kernels;
  for (const DType dtype : kAnyType) {
    KernelDef def{.op = "_FilledConst", .device = "GPU", .types = {{"dtype", dtype}}};
    const bool on_host = dtype == DType::kInt32 || !IsPlain(dtype);  // as for Const
    if (on_host) def.host_args = {"output"};
    def.make = on_host ? Make<FilledConst> : Make<FilledConstOnGpu>;
    kernels.push_back(def);
  }
  return kernels;
}
const KernelDeclaration gpu_filled_const_kernels(GpuFilledConstKernels);
#endif

}  // namespace
}  // namespace penstock
