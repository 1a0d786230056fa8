// SPDX-License-Identifier: Apache-2.0
//
// SerializeTensor, ParseTensor: convert tensors to bytes of TensorFlow's TensorProto, and back.
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/wire/tensor_proto.h"
#include "proto/tensorflow/tensor.pb.h"

namespace penstock {
namespace {

class SerializeTensorKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    tensorflow::TensorProto proto;
    RETURN_IF_ERROR(TensorToProto(ctx.input(0), &proto));
    ctx.SetOutput(0, Tensor::Scalar(proto.SerializeAsString()));
    return OkStatus();
  }
};

class ParseTensorKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& serialized = ctx.input(0);
    if (serialized.rank() != 0) {
      return InvalidArgument("Expected `serialized` to be a scalar, got shape: ",
                             serialized.shape().ToString());
    }
    tensorflow::TensorProto proto;
    if (!proto.ParseFromString(serialized.scalar<std::string>())) {
      return InvalidArgument("Could not parse `serialized` as TensorProto: ",
                             serialized.scalar<std::string>().size(), " bytes");
    }
    ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(proto));
    if (tensor.dtype() != ctx.output_type(0).dtype) {
      return InvalidArgument("Type mismatch between parsed tensor (", Name(tensor.dtype()),
                             ") and dtype (", Name(ctx.output_type(0).dtype), ")");
    }
    ctx.SetOutput(0, std::move(tensor));
    return OkStatus();
  }
};

OP(SerializeTensor) {
  return {
      .doc = "Serializes a tensor as a TensorProto, which ParseTensor reads.",
      .inputs = {{"tensor", "T"}},
      .outputs = {{"serialized", "string"}},
      .types = {{"T", kAnyType}},
      .shape = ScalarShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 3}}}}}},
  };
}

OP(ParseTensor) {
  return {
      .doc = "Parses a serialized TensorProto, which SerializeTensor writes.",
      .inputs = {{"serialized", "string"}},
      .outputs = {{"output", "out_type"}},
      .types = {{"out_type", kAnyType}},
      .shape = UnknownShape,
      .gradient = NoGradient,
      .untestable_alone = "needs serialized bytes: kernels/parsing has its tests",
  };
}
KERNEL_ANY_TYPE(SerializeTensor, SerializeTensorKernel);
KERNEL_ANY_TYPE(ParseTensor, ParseTensorKernel);

}  // namespace
}  // namespace penstock
