// SPDX-License-Identifier: Apache-2.0
//
// SparseToDense: makes a dense tensor with the values at the given places, and a default value at
// all other places.
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/sparse/forms.h"
#include "kernels/sparse/sparse_tensor.h"

namespace penstock {
namespace {

class SparseToDenseKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("validate_indices", &validate_); }

  Status Compute(KernelContext& ctx) override {
    const Tensor &values = ctx.input(2), &filler = ctx.input(3);
    if (ctx.input(0).rank() > 2) {
      return InvalidArgument("sparse_indices should be a scalar, vector, or matrix, got shape ",
                             ctx.input(0).shape().ToString());
    }
    ASSIGN_OR_RETURN(const Shape shape, ShapeVector(ctx.input(1), "output_shape"));
    ASSIGN_OR_RETURN(Tensor places, Matrix(ctx.input(0)));
    const int64_t n = places.dim(0);
    if (places.dim(1) != shape.rank()) {
      return InvalidArgument("output_shape has incorrect number of elements: ", shape.rank(),
                             " should be: ", places.dim(1));
    }
    if (values.rank() > 1 || (values.rank() == 1 && values.dim(0) != n)) {
      return InvalidArgument("sparse_values has incorrect shape ", values.shape().ToString(),
                             ", should be [] or [", n, "]");
    }
    if (filler.rank() != 0) return InvalidArgument("default_value should be a scalar.");
    // Makes a sparse tensor only to check the places; the values of the tensor are not used.
    ASSIGN_OR_RETURN(const SparseTensor sparse,
                     SparseTensor::Make(places, Tensor(DType::kBool, Shape{n}), Longs(shape)));
    RETURN_IF_ERROR(validate_ ? sparse.CheckOrder() : sparse.CheckBounds());
    Tensor* dense;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &dense));
    FillWith(filler.raw_data(), *dense, ctx.threads());
    const DType dtype = values.dtype();
    for (int64_t i = 0; i < n; ++i) {
      int64_t at = 0;
      for (int d = 0; d < shape.rank(); ++d) at = at * shape.dim(d) + sparse.place(i)[d];
      CopyElements(dtype, ElementAt(values.raw_data(), dtype, values.rank() == 0 ? 0 : i),
                   ElementAt(dense->mutable_raw_data(), dtype, at), 1);
    }
    return OkStatus();
  }

 private:
  // Returns the places as an int64 matrix: a vector of indices becomes a column.
  static StatusOr<Tensor> Matrix(const Tensor& indices) {
    const Shape shape = indices.rank() == 2   ? indices.shape()
                        : indices.rank() == 1 ? Shape{indices.dim(0), 1}
                                              : Shape{1, 1};
    if (indices.dtype() == DType::kInt64) return indices.Reshaped(shape);
    Tensor wide(DType::kInt64, shape);
    std::copy_n(indices.data<int32_t>(), indices.num_elements(), wide.mutable_data<int64_t>());
    return wide;
  }
  static Tensor Longs(const Shape& shape) {
    return Tensor::Vector<int64_t>({shape.dims().begin(), shape.dims().end()});
  }

  bool validate_ = true;
};

Status ToDenseShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(s, 1));
  s.set_output(0, std::move(shape));
  return OkStatus();
}

Gradients ToDenseGradient(const GradientScope& g) {
  const Output dense = g.dy();
  // A scalar or vector of indices becomes a column.
  const Output column = Reshape(
      g.x(0),
      Pack({SizeOf(g.x(0)) / Maximum(SizeOf(g.x(1)), g.Const<int32_t>(1)), SizeOf(g.x(1))}));
  const Output values = GatherNd(dense, column);
  const Output all = Range(g.Const<int32_t>(0), RankOf(dense), g.Const<int32_t>(1));
  const Output filler = Sum(dense, all) - Sum(values, g.Const(Tensor::Vector<int32_t>({0})));
  return {Gradient(), Gradient(), SumToShapeOf(values, g.x(2)), filler};
}

}  // namespace

OP(SparseToDense) {
  return {
      .doc =
          "Returns a tensor of output_shape that has sparse_values at sparse_indices and "
          "default_value elsewhere.",
      .inputs = {{"sparse_indices", "Tindices"},
                 {"output_shape", "Tindices"},
                 {"sparse_values", "T"},
                 {"default_value", "T"}},
      .outputs = {{"dense", "T"}},
      .types = {{"T", kAllTypes}, {"Tindices", kIndex}},
      .attrs = {{"validate_indices", AttrValue(true)}},
      .shape = ToDenseShape,
      .gradient = ToDenseGradient,
      .examples = {{.inputs = {{{{2, 2}, {0, 1, 1, 2}}}, {{{2}, {2, 3}}}, {{{2}}}, {{{}}}}},
                   {.inputs = {{{{2}, {1, 3}}}, {{{1}, {5}}}, {{{}}}, {{{}}}}}},
  };
}
KERNEL_ANY_TYPE(SparseToDense, SparseToDenseKernel);

}  // namespace penstock
