// SPDX-License-Identifier: Apache-2.0
//
// DenseToSparseBatchDataset: batches dense elements of different sizes as one sparse tensor, a
// variant vector of its indices, values and shape.
#include <algorithm>
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/array/elements.h"
#include "kernels/dataset/batching.h"
#include "kernels/dataset/dataset_kernel.h"
#include "kernels/sparse/tensor_value.h"

namespace penstock {
namespace {

class DenseToSparseBatchDataset final : public Dataset {
 public:
  DenseToSparseBatchDataset(DatasetPtr input, int64_t size, PartialShape row)
      : Dataset({.types = {DType::kVariant}, .shapes = {PartialShape({3})}}, {input}),
        size_{.elements = size},
        row_(std::move(row)) {}
  const char* Name() const override { return "DenseToSparseBatch"; }
  int64_t Cardinality() const override { return size_.BatchesOf(input().Cardinality()); }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    return NewIteratorOf<Iterator>(this, ctx);
  }

 private:
  class Iterator final : public IteratorOf<DenseToSparseBatchDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      std::vector<Element> elements;
      const auto check = [this](const Element& next) { return dataset().CheckRow(next); };
      RETURN_IF_ERROR(dataset().size_.Read(ctx, *input_, check, &elements, end));
      if (*end) return OkStatus();
      std::vector<Tensor> rows;
      for (Element& next : elements) rows.push_back(std::move(next[0]));
      return dataset().MakeBatch(rows, element);
    }
  };

  Status CheckRow(const Element& element) const {
    if (element.size() != 1 || element[0].dtype() != input().spec().types[0]) {
      return InvalidArgument("an element must be one tensor of type ",
                             ::penstock::Name(input().spec().types[0]));
    }
    const Shape& shape = element[0].shape();
    if (shape.rank() != row_.rank()) {
      return InvalidArgument("Input element had shape (", shape.ToString(),
                             ") that is incompatible with the row shape (", row_.ToString(), ").");
    }
    for (int d = 0; d < shape.rank(); ++d) {
      if (row_.dim(d) >= 0 && shape.dim(d) > row_.dim(d)) {
        return DataLoss("Input element had shape (", shape.ToString(),
                        ") that is larger than the row shape (", row_.ToString(), ").");
      }
    }
    return OkStatus();
  }

  // Returns the dense shape of the batch: the declared row shape, in which unknown sizes become the
  // largest size of the rows.
  Tensor DenseShape(const std::vector<Tensor>& rows) const {
    Tensor shape(DType::kInt64, Shape({row_.rank() + 1}));
    int64_t* dims = shape.mutable_data<int64_t>();
    dims[0] = static_cast<int64_t>(rows.size());
    for (int d = 0; d < row_.rank(); ++d) {
      dims[d + 1] = std::max<int64_t>(row_.dim(d), 0);
      if (row_.dim(d) >= 0) continue;
      for (const Tensor& row : rows) dims[d + 1] = std::max(dims[d + 1], row.dim(d));
    }
    return shape;
  }

  Status MakeBatch(const std::vector<Tensor>& rows, Element* element) const {
    const DType dtype = input().spec().types[0];
    const int64_t columns = row_.rank() + 1;
    int64_t count = 0;
    for (const Tensor& row : rows) count += row.num_elements();
    ASSIGN_OR_RETURN(Tensor indices, NewTensor(DType::kInt64, Shape({count, columns})));
    ASSIGN_OR_RETURN(Tensor values, NewTensor(dtype, Shape({count})));
    int64_t* index = indices.mutable_data<int64_t>();
    int64_t at = 0;
    for (size_t r = 0; r < rows.size(); ++r) {
      const Tensor& row = rows[r];
      CopyElements(dtype, row.raw_data(), ElementAt(values.mutable_raw_data(), dtype, at),
                   row.num_elements());
      at += row.num_elements();
      for (int64_t i = 0; i < row.num_elements(); ++i, index += columns) {
        index[0] = static_cast<int64_t>(r);
        int64_t rest = i;
        for (int d = row.rank() - 1; d >= 0; --d) {
          index[d + 1] = rest % row.dim(d);
          rest /= row.dim(d);
        }
      }
    }
    Tensor batch(DType::kVariant, Shape({3}));
    Variant* parts = batch.mutable_data<Variant>();
    ASSIGN_OR_RETURN(parts[0], TensorValue::Of(std::move(indices)));
    ASSIGN_OR_RETURN(parts[1], TensorValue::Of(std::move(values)));
    ASSIGN_OR_RETURN(parts[2], TensorValue::Of(DenseShape(rows)));
    *element = {std::move(batch)};
    return OkStatus();
  }

  const BatchSize size_;
  const PartialShape row_;
};

class DenseToSparseBatchKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    if (input->spec().types.size() != 1) {
      return InvalidArgument("DenseToSparseBatchDataset only supports inputs with a single ",
                             "component; input_dataset has ", input->spec().types.size());
    }
    ASSIGN_OR_RETURN(const int64_t size, ScalarInput<int64_t>(ctx, 1, "batch_size"));
    if (size <= 0) return InvalidArgument("Batch size must be greater than zero.");
    const Tensor& row = ctx.input(2);
    if (row.rank() != 1) {
      return InvalidArgument("row_shape must be a vector, has shape ", row.shape().ToString());
    }
    ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(row.flat<int64_t>()));
    return std::make_shared<DenseToSparseBatchDataset>(std::move(input), size, std::move(shape));
  }
};

DatasetOp DenseToSparseBatchOp() {
  return {.doc =
              "Batches `batch_size` dense elements of a dataset, of different sizes, as one sparse "
              "tensor. Where row_shape has -1, a batch is as large as its largest element.",
          .inputs = {{"input_dataset", "variant"}, {"batch_size", "int64"}, {"row_shape", "int64"}},
          .metadata = false};
}
OP(DenseToSparseBatchDataset) { return DenseToSparseBatchOp(); }
OP(ExperimentalDenseToSparseBatchDataset) { return DenseToSparseBatchOp(); }
KERNEL_ANY_TYPE(DenseToSparseBatchDataset, DenseToSparseBatchKernel);
KERNEL_ANY_TYPE(ExperimentalDenseToSparseBatchDataset, DenseToSparseBatchKernel);

}  // namespace
}  // namespace penstock
