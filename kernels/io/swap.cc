// SPDX-License-Identifier: Apache-2.0
//
// _SwapOut, _SwapIn: write a tensor to a file, so that its memory can be used for other tensors,
// and read it back. The compiler adds the two ops if there is a memory limit
// (core/compiler/memory). The edge between them carries a variant that owns a part of the file;
// destroying the variant frees that part.
#include <memory>
#include <utility>
#include <vector>

#include "core/base/blocking_calls.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/variant.h"
#include "kernels/io/file_kernel.h"
#include "kernels/io/swap_file.h"

namespace penstock {
namespace {

class SwappedTensor final : public VariantValue {
 public:
  SwappedTensor(const Tensor& tensor, int64_t offset)
      : dtype(tensor.dtype()),
        shape(tensor.shape()),
        offset(offset),
        bytes(static_cast<int64_t>(tensor.bytes())) {}
  ~SwappedTensor() override { SwapFile::OfProcess().Return(offset, bytes); }

  const char* TypeName() const override { return "penstock::SwappedTensor"; }
  std::string ToString() const override {
    return StrCat("a swapped ", Name(dtype), shape.ToString());
  }
  Status Encode(std::string*, std::vector<Tensor>*) const override {
    return Unimplemented("a swapped tensor stays in its process");
  }

  const DType dtype;
  const Shape shape;
  const int64_t offset, bytes;
};

class SwapOutKernel final : public FileKernel {
  Status Run(KernelContext& ctx) const override {
    const Tensor& tensor = ctx.input(0);
    if (!IsPlain(tensor.dtype())) {
      return InvalidArgument("a tensor of ", Name(tensor.dtype()), " cannot be swapped");
    }
    const auto bytes = static_cast<int64_t>(tensor.bytes());
    ASSIGN_OR_RETURN(const int64_t offset, SwapFile::OfProcess().Take(bytes));
    auto swapped = std::make_shared<SwappedTensor>(tensor, offset);
    RETURN_IF_ERROR(SwapFile::OfProcess().Write(offset, tensor.raw_data(), bytes,
                                                [&ctx] { return CheckNotCancelled(ctx); }));
    ctx.SetOutput(0, Tensor::Scalar(Variant{std::move(swapped)}));
    return OkStatus();
  }
};

class SwapInKernel final : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) override {
    const StatusOr<const SwappedTensor*> swapped = Swapped(ctx);
    if (!swapped.ok()) return std::move(done)(swapped.status());
    // Allocates on the executor's thread, so that the memory is charged to the step.
    Tensor* tensor = nullptr;
    Status allocated = ctx.Allocate(0, (*swapped)->shape, &tensor);
    if (!allocated.ok()) return std::move(done)(std::move(allocated));
    ctx.threads().files().Schedule(
        [&ctx, &from = **swapped, tensor, done = std::move(done)]() mutable {
          const BlockingCall call(StrCat("node '", ctx.node_name(), "' of step ",
                                         ctx.step().step_id, " waits for a swapped tensor"),
                                  *ctx.step().env);
          std::move(done)(SwapFile::OfProcess().Read(from.offset, tensor->mutable_raw_data(),
                                                     from.bytes,
                                                     [&ctx] { return CheckNotCancelled(ctx); }));
        });
  }

 private:
  static StatusOr<const SwappedTensor*> Swapped(const KernelContext& ctx) {
    const Tensor& handle = ctx.input(0);
    const DType dtype = ctx.output_type(0).dtype;
    const bool one = handle.dtype() == DType::kVariant && handle.num_elements() == 1;
    const auto* const swapped =
        one ? dynamic_cast<const SwappedTensor*>(handle.scalar<Variant>().value.get()) : nullptr;
    if (swapped == nullptr || swapped->dtype != dtype) {
      return InvalidArgument("handle must be what _SwapOut made of a ", Name(dtype));
    }
    return swapped;
  }
};

OP(_SwapOut) {
  return {
      .doc = "Writes a tensor to a file of this process, from which _SwapIn reads it.",
      .inputs = {{"tensor", "T"}},
      .outputs = {{"handle", "variant"}},
      .types = {{"T", kAnyType}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(_SwapOut, SwapOutKernel);

OP(_SwapIn) {
  return {
      .doc = "Reads the tensor that _SwapOut wrote.",
      .inputs = {{"handle", "variant"}},
      .outputs = {{"tensor", "T"}},
      .types = {{"T", kAnyType}},
      .shape = UnknownShape,
      .gradient = NoGradient,
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(_SwapIn, SwapInKernel);

}  // namespace
}  // namespace penstock
