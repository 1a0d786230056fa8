// SPDX-License-Identifier: Apache-2.0
#include "kernels/tensor_array/element_kernels.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/array/arguments.h"
#include "kernels/array/rows.h"

namespace penstock {
namespace {

// Returns the array whose handle is input 0. InvalidArgument if its elements do not have type
// `dtype`.
StatusOr<std::shared_ptr<TensorArray>> ArrayInput(KernelContext& ctx, DType dtype,
                                                  const char* verb) {
  ASSIGN_OR_RETURN(auto array, StepResourceInputAs<TensorArray>(ctx, 0));
  if (array->dtype() == dtype) return array;
  return InvalidArgument("TensorArray dtype is ", Name(array->dtype()), " but Op ", verb, " dtype ",
                         Name(dtype), ".");
}

StatusOr<std::vector<int64_t>> AllIndices(const TensorArray& array) {
  ASSIGN_OR_RETURN(const int64_t size, array.SizeOfWhole());
  std::vector<int64_t> indices(size);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

StatusOr<std::vector<int64_t>> Indices(const Tensor& input) {
  ASSIGN_OR_RETURN(const Dims indices, IntVector(input, "indices"));
  return std::vector<int64_t>(indices.begin(), indices.end());
}

// Returns the shape of an op's attribute merged with the known shape of the array's elements.
// InvalidArgument if they do not fit.
StatusOr<PartialShape> Declared(const PartialShape& attr, const PartialShape& known,
                                const char* name) {
  StatusOr<PartialShape> both = attr.Merge(known);
  if (both.ok()) return both;
  return InvalidArgument(
      "TensorArray was passed ", name, " ", attr.ToString(),
      " which does not match the TensorArray's element shape: ", known.ToString());
}

PartialShape WithoutDim0(const PartialShape& shape) {
  return shape.known_rank() && shape.rank() > 0 ? SubShape(shape, 1, shape.rank()) : PartialShape();
}

}  // namespace

Status TensorArrayWriteKernel::Compute(KernelContext& ctx) {
  ASSIGN_OR_RETURN(const auto array, ArrayInput(ctx, ctx.input(2).dtype(), "is trying to write"));
  ASSIGN_OR_RETURN(const int64_t index, IntScalar(ctx.input(1), "index"));
  std::vector<Tensor> values;
  values.push_back(ctx.TakeInput(2));
  RETURN_IF_ERROR(array->Write(ctx, {index}, std::move(values)));
  ctx.SetOutput(0, ctx.TakeInput(3));
  return OkStatus();
}

Status TensorArrayReadKernel::Compute(KernelContext& ctx) {
  ASSIGN_OR_RETURN(const auto array, ArrayInput(ctx, ctx.output_type(0).dtype, "requested"));
  ASSIGN_OR_RETURN(const int64_t index, IntScalar(ctx.input(1), "index"));
  ASSIGN_OR_RETURN(std::vector<Tensor> values, array->Read(ctx, {index}));
  ctx.SetOutput(0, std::move(values[0]));
  return OkStatus();
}

Status TensorArrayGatherKernel::Init(const KernelInit& node) {
  return node.Attr("element_shape", &element_shape_);
}

Status TensorArrayGatherKernel::Compute(KernelContext& ctx) {
  ASSIGN_OR_RETURN(const auto array, ArrayInput(ctx, ctx.output_type(0).dtype, "requested"));
  ASSIGN_OR_RETURN(const PartialShape known,
                   Declared(element_shape_, array->element_shape(), "element_shape"));
  const bool all = ctx.num_inputs() == 2;
  ASSIGN_OR_RETURN(const std::vector<int64_t> indices,
                   all ? AllIndices(*array) : Indices(ctx.input(1)));
  ASSIGN_OR_RETURN(const std::vector<Tensor> parts, array->Read(ctx, indices));
  if (parts.empty() && !known.fully_known()) {
    return Unimplemented("TensorArray has size zero, but element shape ", known.ToString(),
                         " is not fully defined. Currently only static shapes are supported when "
                         "packing zero-size TensorArrays.");
  }
  const Shape each = parts.empty() ? known.ToShape() : parts[0].shape();
  if (!element_shape_.Compatible(each)) {
    return InvalidArgument("TensorArray was passed element_shape ", element_shape_.ToString(),
                           " which does not match the Tensor at index 0: ", each.ToString());
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].shape() == each) continue;
    return InvalidArgument(
        "TensorArray has inconsistent shapes.  Index 0 has shape: ", each.ToString(), " but index ",
        i, " has shape: ", parts[i].shape().ToString());
  }
  ASSIGN_OR_RETURN(const Shape shape, WithFirst(static_cast<int64_t>(parts.size()), each));
  Tensor* output;
  RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
  JoinRows(ctx, parts, output);
  return OkStatus();
}

Status TensorArrayScatterKernel::Compute(KernelContext& ctx) {
  const bool all = ctx.num_inputs() == 3;
  const int value_input = all ? 1 : 2;
  const Tensor value = ctx.TakeInput(value_input);
  ASSIGN_OR_RETURN(const auto array, ArrayInput(ctx, value.dtype(), "is trying to write"));
  if (value.rank() == 0) {
    return InvalidArgument("Input value for unpack must be at least a vector, is a scalar");
  }
  const int64_t rows = value.dim(0);
  std::vector<int64_t> indices(all ? rows : 0);
  if (all) {
    ASSIGN_OR_RETURN(const int64_t size, array->Size());
    if (rows != size && !(array->dynamic_size() && rows > size)) {
      return InvalidArgument("Input value must have first dimension equal to the array size (",
                             rows, " vs. ", size, ")");
    }
    std::iota(indices.begin(), indices.end(), 0);
  } else {
    ASSIGN_OR_RETURN(indices, Indices(ctx.input(1)));
    if (static_cast<int64_t>(indices.size()) != rows) {
      return InvalidArgument("Expected len(indices) == values.shape[0], but saw: ", indices.size(),
                             " vs. ", rows);
    }
  }
  Shape each = value.shape();
  each.RemoveDim(0);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < rows; ++i) {
    ASSIGN_OR_RETURN(Tensor part, Rows(ctx, value, i, i + 1, each));
    parts.push_back(std::move(part));
  }
  RETURN_IF_ERROR(array->Write(ctx, indices, std::move(parts)));
  if (all) array->MarkSplit(rows);
  ctx.SetOutput(0, ctx.TakeInput(value_input + 1));
  return OkStatus();
}

Status TensorArrayConcatKernel::Init(const KernelInit& node) {
  return node.Attr("element_shape_except0", &element_shape_except0_);
}

Status TensorArrayConcatKernel::Compute(KernelContext& ctx) {
  ASSIGN_OR_RETURN(const auto array, ArrayInput(ctx, ctx.output_type(0).dtype, "requested"));
  ASSIGN_OR_RETURN(const PartialShape known,
                   Declared(element_shape_except0_, WithoutDim0(array->element_shape()),
                            "element_shape_except0"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> indices, AllIndices(*array));
  ASSIGN_OR_RETURN(const std::vector<Tensor> parts, array->Read(ctx, indices));
  if (parts.empty() && !known.fully_known()) {
    return Unimplemented("TensorArray has size zero, but element_shape_except0 ", known.ToString(),
                         " is not fully defined. Currently only static shapes are supported when "
                         "concatenating zero-size TensorArrays.");
  }
  Shape rest = parts.empty() ? known.ToShape() : Shape();
  const Shape lengths_shape = {static_cast<int64_t>(parts.size())};
  Tensor* lengths;
  RETURN_IF_ERROR(ctx.Allocate(1, lengths_shape, &lengths));
  int64_t total = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    Shape except0 = parts[i].shape();
    if (except0.rank() == 0) {
      return InvalidArgument("Concat saw a scalar shape at index ", i,
                             " but requires at least vectors.  Did you mean to call pack?");
    }
    except0.RemoveDim(0);
    if (i == 0) rest = except0;
    if (except0 != rest || !element_shape_except0_.Compatible(except0)) {
      return InvalidArgument("TensorArray has inconsistent shapes.  Index 0 has (excepting ",
                             "dimension 0) shape: ", rest.ToString(), " but index ", i,
                             " has (excepting dimension 0) shape: ", except0.ToString(),
                             "; element_shape_except0 is ", element_shape_except0_.ToString());
    }
    lengths->mutable_data<int64_t>()[i] = parts[i].dim(0);
    total += parts[i].dim(0);
  }
  ASSIGN_OR_RETURN(const Shape shape, WithFirst(total, rest));
  Tensor* value;
  RETURN_IF_ERROR(ctx.Allocate(0, shape, &value));
  JoinRows(ctx, parts, value);
  return OkStatus();
}

Status TensorArraySplitKernel::Compute(KernelContext& ctx) {
  const Tensor value = ctx.TakeInput(1);
  ASSIGN_OR_RETURN(const auto array, ArrayInput(ctx, value.dtype(), "is trying to write"));
  ASSIGN_OR_RETURN(const Dims lengths, IntVector(ctx.input(2), "lengths"));
  if (value.rank() == 0) {
    return InvalidArgument("Expected value to be at least a vector, but received shape: []");
  }
  ASSIGN_OR_RETURN(const int64_t size, array->Size());
  const int64_t count = static_cast<int64_t>(lengths.size());
  if (count != size && !(array->dynamic_size() && count > size)) {
    return InvalidArgument("TensorArray's size is not equal to the size of lengths (", size,
                           " vs. ", count,
                           "), and the TensorArray is not marked as dynamically resizeable");
  }
  int64_t left = value.dim(0);
  for (const int64_t length : lengths) {
    if (length < 0) return InvalidArgument("lengths must be >= 0, one is ", length);
    if (length > left) {
      left = -1;
      break;
    }
    left -= length;
  }
  if (left != 0) {
    return InvalidArgument("Expected sum of lengths to be equal to values.shape[0], which is ",
                           value.dim(0), "; lengths: ", ctx.input(2).ToString());
  }
  Shape each = value.shape();
  each.RemoveDim(0);
  std::vector<int64_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    ASSIGN_OR_RETURN(const Shape shape, WithFirst(length, each));
    ASSIGN_OR_RETURN(Tensor part, Rows(ctx, value, begin, begin + length, shape));
    parts.push_back(std::move(part));
    begin += length;
  }
  RETURN_IF_ERROR(array->Write(ctx, indices, std::move(parts)));
  array->MarkSplit(count);
  ctx.SetOutput(0, ctx.TakeInput(3));
  return OkStatus();
}

}  // namespace penstock
