// SPDX-License-Identifier: Apache-2.0
//
// SerializeSparse, SerializeManySparse, DeserializeSparse, DeserializeManySparse: convert a sparse
// tensor to three strings, which queues and files can hold, or to three variants for datasets, and
// back.
#include "kernels/sparse/forms.h"
#include "kernels/sparse/rows.h"
#include "kernels/sparse/sparse_tensor.h"
#include "kernels/sparse/tensor_bytes.h"
#include "kernels/sparse/tensor_value.h"

namespace penstock {
namespace {

// Sets element `i` of a serialized tensor, which consists of strings or variants.
Status SetPart(Tensor* serialized, int64_t i, const Tensor& part) {
  if (serialized->dtype() == DType::kString) {
    serialized->mutable_data<std::string>()[i] = TensorBytes(part);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(serialized->mutable_data<Variant>()[i], TensorValue::Of(part));
  return OkStatus();
}

StatusOr<Tensor> DeserializePart(const Tensor& serialized, int64_t i, Allocator& allocator) {
  if (serialized.dtype() == DType::kString) {
    return TensorFromBytes(serialized.data<std::string>()[i], allocator);
  }
  const auto* part = dynamic_cast<const TensorValue*>(serialized.data<Variant>()[i].value.get());
  if (part != nullptr) return part->tensor();
  return InvalidArgument("serialized_sparse[", i, "] is a variant that is no tensor");
}

class SerializeSparseKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const SparseTensor x, SparseTensor::FromInputs(ctx, 0, "sparse"));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape{3}, &out));
    for (int i = 0; i < 3; ++i) RETURN_IF_ERROR(SetPart(out, i, ctx.input(i)));
    return OkStatus();
  }
};

// Serializes each row of dimension 0 as a sparse tensor.
class SerializeManySparseKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const SparseTensor x, SparseTensor::FromInputs(ctx, 0, "sparse"));
    ASSIGN_OR_RETURN(const int64_t rows, CountSparseRows(x));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make({rows, 3}));
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &out));
    const Tensor row_shape = Tensor::Vector<int64_t>({x.shape().begin() + 1, x.shape().end()});
    return ForEachSparseRow(x, [&](int64_t row, const Tensor& indices, const Tensor& values) {
      RETURN_IF_ERROR(SetPart(out, 3 * row, indices));
      RETURN_IF_ERROR(SetPart(out, 3 * row + 1, values));
      return SetPart(out, 3 * row + 2, row_shape);
    });
  }
};

// Stacks the sparse tensors in a tensor [..., 3] of strings or variants along leading dimensions.
// The shape is the least that holds all of them.
template <bool kMatrix>
class DeserializeSparseKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    if (input.rank() < 1 || input.dim(input.rank() - 1) != 3 || (kMatrix && input.rank() != 2)) {
      return InvalidArgument("serialized_sparse must have shape [", kMatrix ? "n" : "...",
                             ", 3], has ", input.shape().ToString());
    }
    const int64_t n = input.num_elements() / 3;
    if (n == 0) {
      return InvalidArgument("Must have at least 1 serialized SparseTensor, but input has shape ",
                             input.shape().ToString());
    }
    std::vector<SparseTensor> parts;
    for (int64_t i = 0; i < n; ++i) {
      ASSIGN_OR_RETURN(SparseTensor part, Parse(ctx, i));
      parts.push_back(std::move(part));
    }
    return WriteSparseStack(ctx, input.shape().dims().subspan(0, input.rank() - 1), parts);
  }

 private:
  static StatusOr<SparseTensor> Parse(KernelContext& ctx, int64_t i) {
    Tensor tensors[3];
    for (int k = 0; k < 3; ++k) {
      ASSIGN_OR_RETURN(tensors[k], DeserializePart(ctx.input(0), 3 * i + k, ctx.allocator()));
    }
    const DType wanted = ctx.output_type(1).dtype;
    if (tensors[1].dtype() != wanted) {
      return InvalidArgument("Requested SparseTensor of type ", Name(wanted), " but SparseTensor[",
                             i, "].values.dtype() == ", Name(tensors[1].dtype()));
    }
    return SparseTensor::Make(tensors[0], tensors[1], tensors[2], StrCat("SparseTensor[", i, "]"));
  }
};

Status SerializeShape(ShapeScope& s) {
  RETURN_IF_ERROR(SparseInputRank(s, 0).status());
  s.set_output(0, PartialShape{3});
  return OkStatus();
}

Status SerializeManyShape(ShapeScope& s) {
  RETURN_IF_ERROR(SparseInputRank(s, 0).status());
  std::vector<int64_t> shape;
  const bool known = s.ConstantInts(2, &shape) && !shape.empty() && shape[0] >= 0;
  s.set_output(0, PartialShape{known ? shape[0] : -1, 3});
  return OkStatus();
}

Status DeserializeShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape input, s.WithRankAtLeast(0, 1));
  const int64_t last = input.known_rank() ? input.dim(input.rank() - 1) : -1;
  if (last >= 0 && last != 3) {
    return InvalidArgument("serialized_sparse must have shape [..., 3], has ", input.ToString());
  }
  SetSparseOutput(s, 0, -1, -1);
  return OkStatus();
}

// Returns all types that a tensor can hold except handles.
DTypes Serializable() {
  DTypes types;
  for (const DType dtype : kAllTypes) {
    if (IsPlain(dtype) || dtype == DType::kString) types.push_back(dtype);
  }
  return types;
}

OpDef SerializeOp(const char* doc, ShapeFn shape) {
  return {
      .doc = doc,
      .inputs = SparseArgs("sparse"),
      .outputs = {{"serialized_sparse", "out_type"}},
      .types = {{"T", Serializable()},
                {"out_type", {DType::kString, DType::kVariant}, DType::kString}},
      .shape = std::move(shape),
      .examples = {{.inputs = SparseExample()}},
  };
}

}  // namespace

OP(SerializeSparse) {
  return SerializeOp(
      "Serializes a sparse tensor as a vector of three strings: its indices, values and "
      "shape, each a TensorProto.",
      SerializeShape);
}

OP(SerializeManySparse) {
  return SerializeOp("Serializes each row of a sparse tensor as three strings.",
                     SerializeManyShape);
}
KERNEL_ANY_TYPE(SerializeSparse, SerializeSparseKernel);
KERNEL_ANY_TYPE(SerializeManySparse, SerializeManySparseKernel);

OP(DeserializeSparse) {
  return {
      .doc =
          "Parses a tensor of serialized sparse tensors [..., 3], and stacks them along its "
          "leading dimensions.",
      .inputs = {{"serialized_sparse", "Tserialized"}},
      .outputs = {{"sparse_indices", "int64"},
                  {"sparse_values", "dtype"},
                  {"sparse_shape", "int64"}},
      .types = {{"dtype", Serializable()},
                {"Tserialized", {DType::kString, DType::kVariant}, DType::kString}},
      .shape = DeserializeShape,
      .untestable_alone = "reads what another op wrote: kernels/sparse has its tests",
  };
}

OP(DeserializeManySparse) {
  return {
      .doc = "Parses a matrix of serialized sparse tensors [n, 3], and stacks them.",
      .inputs = {{"serialized_sparse", "string"}},
      .outputs = {{"sparse_indices", "int64"},
                  {"sparse_values", "dtype"},
                  {"sparse_shape", "int64"}},
      .types = {{"dtype", Serializable()}},
      .shape = DeserializeShape,
      .untestable_alone = "reads what another op wrote: kernels/sparse has its tests",
  };
}
KERNEL_ANY_TYPE(DeserializeSparse, DeserializeSparseKernel<false>);
KERNEL_ANY_TYPE(DeserializeManySparse, DeserializeSparseKernel<true>);

}  // namespace penstock
