// SPDX-License-Identifier: Apache-2.0
//
// Dataset::Batch and Dataset::PaddedBatch.
#include <cstring>
#include <utility>

#include "client/dataset_node.h"

namespace penstock::client {
namespace {

// Returns the shape of a batch of elements of shape `element`.
PartialShape BatchShape(int64_t batch_size, bool drop_remainder, const PartialShape& element) {
  if (!element.known_rank()) return {};
  PartialShape shape = {drop_remainder ? batch_size : PartialShape::kUnknown};
  for (const int64_t dim : element.dims()) shape.AddDim(dim);
  return shape;
}

// Returns a scalar zero, or an empty string. REQUIRES: IsPlain(dtype), or it is string.
Tensor Zero(DType dtype) {
  Tensor zero(dtype, Shape());
  if (IsPlain(dtype)) std::memset(zero.mutable_raw_data(), 0, zero.bytes());
  return zero;
}

// Returns the shape to which component `i` is padded. Fails `node` if the component cannot be
// padded to it.
PartialShape PaddedShape(DatasetNode& node, const Dataset& input, size_t i,
                         const PaddedBatchOptions& options) {
  const PartialShape& shape = input.shapes()[i];
  if (options.shapes.empty()) {
    if (!shape.known_rank()) node.Fail("the rank of component ", i, " is not known: give `shapes`");
    return shape;
  }
  const PartialShape& padded = options.shapes[i];
  if (!padded.known_rank() || (shape.known_rank() && shape.rank() != padded.rank())) {
    node.Fail("component ", i, " has the shape ", shape.ToString(), ", which cannot be padded to ",
              padded.ToString());
    return padded;
  }
  for (int d = 0; d < shape.rank(); ++d) {
    if (padded.dim(d) < 0 || shape.dim(d) <= padded.dim(d)) continue;
    node.Fail("component ", i, " has the shape ", shape.ToString(), ", which is larger than ",
              padded.ToString());
  }
  return padded;
}

Tensor PaddingValue(DatasetNode& node, const Dataset& input, size_t i,
                    const PaddedBatchOptions& options) {
  const DType type = input.types()[i];
  if (!options.values.empty()) {
    const Tensor& value = options.values[i];
    if (value.dtype() == type && value.rank() == 0) return value;
    node.Fail("the padding value of component ", i, " must be a scalar ", Name(type), ", is ",
              Name(value.dtype()), value.shape().ToString());
  } else if (IsPlain(type) || type == DType::kString) {
    return Zero(type);
  } else {
    node.Fail("component ", i, " is ", Name(type), ", which cannot be padded");
  }
  return Tensor::Scalar<int64_t>(0);
}

Tensor DimsOf(const PartialShape& shape) {
  return Tensor::Vector(std::vector<int64_t>(shape.dims().begin(), shape.dims().end()));
}

}  // namespace

Dataset Dataset::Batch(int64_t batch_size, const DatasetBatchOptions& options, Line line) const {
  DatasetNode node(*this, "batch", line);
  node.AtLeast("batch_size", batch_size, 1);
  if (!graph_->status().ok()) return *this;  // BatchShape needs a valid size
  TensorSpecs batches = elements_;
  for (PartialShape& shape : batches.shapes) {
    shape = BatchShape(batch_size, options.drop_remainder, shape);
  }
  const Output size = node.Number(batch_size);
  const Output drop = node.Value(Tensor::Scalar(options.drop_remainder));
  return node.Make("BatchDatasetV2", {variant_, size, drop}, DatasetNode::Spec(batches), batches);
}

Dataset Dataset::PaddedBatch(int64_t batch_size, const PaddedBatchOptions& options,
                             Line line) const {
  DatasetNode node(*this, "padded_batch", line);
  node.AtLeast("batch_size", batch_size, 1);
  const size_t count = elements_.size();
  const size_t shapes = options.shapes.size(), given = options.values.size();
  if ((shapes != 0 && shapes != count) || (given != 0 && given != count)) {
    node.Fail("there are ", shapes, " shapes and ", given, " values for ", count, " components");
  }
  if (!graph_->status().ok()) return *this;
  TensorSpecs batches{.types = types()};
  Outputs sizes, values;
  for (size_t i = 0; i < count; ++i) {
    const PartialShape padded = PaddedShape(node, *this, i, options);
    batches.shapes.push_back(BatchShape(batch_size, options.drop_remainder, padded));
    sizes.push_back(node.Value(DimsOf(padded)));
    values.push_back(node.Value(PaddingValue(node, *this, i, options)));
  }
  const Output size = node.Number(batch_size);
  const Output drop = node.Value(Tensor::Scalar(options.drop_remainder));
  return node.Make("PaddedBatchDatasetV2", {variant_, size, sizes, values, drop},
                   {{"output_shapes", batches.shapes}}, batches);
}

}  // namespace penstock::client
