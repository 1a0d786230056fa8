// SPDX-License-Identifier: Apache-2.0
//
// SparseTensorSliceDataset: the rows of a sparse tensor, each as a sparse tensor (indices, values,
// shape).
#include <algorithm>
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/array/elements.h"
#include "kernels/dataset/dataset_kernel.h"

namespace penstock {
namespace {

class SparseSlicesDataset final : public Dataset {
 public:
  SparseSlicesDataset(ElementSpec spec, Tensor indices, Tensor values, Tensor shape)
      : Dataset(std::move(spec), {}),
        indices_(std::move(indices)),
        values_(std::move(values)),
        shape_(std::move(shape)) {}
  const char* Name() const override { return "SparseTensorSlice"; }
  int64_t Cardinality() const override { return shape_.data<int64_t>()[0]; }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext&) const override {
    return std::make_unique<Iterator>(Self(this));
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    explicit Iterator(std::shared_ptr<const SparseSlicesDataset> dataset)
        : dataset_(std::move(dataset)) {}
    bool NeverWaits() const override { return true; }
    Status GetNext(const IteratorContext&, Element* element, bool* end) override {
      *end = row_ >= dataset_->Cardinality();
      if (*end) return OkStatus();
      const int64_t first = next_;
      while (next_ < dataset_->indices_.dim(0) && dataset_->RowOf(next_) == row_) ++next_;
      ++row_;
      return dataset_->MakeRow(first, next_, element);
    }
    Status Save(const IteratorContext&, StateWriter* writer) override {
      writer->Label("SparseTensorSlice");
      writer->Int(row_);
      writer->Int(next_);
      return OkStatus();
    }
    Status Restore(const IteratorContext&, StateReader* reader) override {
      RETURN_IF_ERROR(reader->Label("SparseTensorSlice"));
      ASSIGN_OR_RETURN(row_, reader->Int());
      ASSIGN_OR_RETURN(next_, reader->Int(0, dataset_->indices_.dim(0)));
      return OkStatus();
    }

   private:
    const std::shared_ptr<const SparseSlicesDataset> dataset_;
    int64_t row_ = 0;
    int64_t next_ = 0;  // the first value not yet returned
  };

  int64_t RowOf(int64_t value) const { return indices_.data<int64_t>()[value * indices_.dim(1)]; }

  // Makes the element from the values [begin, end) of one row.
  Status MakeRow(int64_t begin, int64_t end, Element* element) const {
    const int64_t rank = indices_.dim(1) - 1, count = end - begin;
    ASSIGN_OR_RETURN(Tensor places, NewTensor(DType::kInt64, Shape({count, rank})));
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(indices_.data<int64_t>() + (begin + i) * (rank + 1) + 1, rank,
                  places.mutable_data<int64_t>() + i * rank);
    }
    ASSIGN_OR_RETURN(Tensor values, NewTensor(values_.dtype(), Shape({count})));
    CopyElements(values_.dtype(), ElementAt(values_.raw_data(), values_.dtype(), begin),
                 values.mutable_raw_data(), count);
    Tensor shape(DType::kInt64, Shape({rank}));
    std::copy_n(shape_.data<int64_t>() + 1, rank, shape.mutable_data<int64_t>());
    *element = {std::move(places), std::move(values), std::move(shape)};
    return OkStatus();
  }

  const Tensor indices_, values_, shape_;
};

class SparseSlicesKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    const Tensor &indices = ctx.input(0), &values = ctx.input(1), &shape = ctx.input(2);
    if (indices.rank() != 2) {
      return InvalidArgument("Input indices must be a matrix. Got: ", indices.shape().ToString());
    }
    if (values.rank() != 1) {
      return InvalidArgument("Input values must be a vector. Got: ", values.shape().ToString());
    }
    if (shape.rank() != 1 || shape.dim(0) < 1) {
      return InvalidArgument("Input shape must be a vector of at least one dimension. Got: ",
                             shape.shape().ToString());
    }
    if (indices.dim(0) != values.dim(0) || indices.dim(1) != shape.dim(0)) {
      return InvalidArgument(
          "Number of values and indices must be equal, and each index must have ",
          "as many parts as the shape. Got: ", indices.shape().ToString(), ", ",
          values.shape().ToString(), " and ", shape.shape().ToString());
    }
    int64_t previous = 0;
    for (int64_t i = 0; i < indices.dim(0); ++i) {
      const int64_t row = indices.data<int64_t>()[i * indices.dim(1)];
      if (row < previous || row >= shape.data<int64_t>()[0]) {
        return Unimplemented("The SparseTensor must be ordered in the batch dimension; handling ",
                             "arbitrarily ordered input is not currently supported.");
      }
      previous = row;
    }
    const int64_t rank = shape.dim(0) - 1;
    ElementSpec made{
        .types = {DType::kInt64, values.dtype(), DType::kInt64},
        .shapes = {PartialShape({-1, rank}), PartialShape({-1}), PartialShape({rank})}};
    return std::make_shared<SparseSlicesDataset>(std::move(made), indices, values, shape);
  }
};

OP(SparseTensorSliceDataset) {
  OpDef op = DatasetOp{
      .doc =
          "A dataset of the rows of a sparse tensor. Each element is a row as a sparse tensor: "
          "indices, values and shape.",
      .inputs = {{"indices", "int64"}, {"values", "Tvalues"}, {"dense_shape", "int64"}},
      .spec = false,
      .metadata = false,
      .stateful = true};
  op.types = {{"Tvalues", kAllTypes}};
  return op;
}
KERNEL_ANY_TYPE(SparseTensorSliceDataset, SparseSlicesKernel);

}  // namespace
}  // namespace penstock
