// SPDX-License-Identifier: Apache-2.0
//
// PaddedBatchDataset, PaddedBatchDatasetV2: stack several elements into one. Each element is padded
// to the largest size in the batch, or to a given shape.
#include <algorithm>
#include <memory>
#include <utility>

#include "core/op/registry.h"
#include "kernels/array/elements.h"
#include "kernels/dataset/batching.h"
#include "kernels/dataset/dataset_kernel.h"

namespace penstock {
namespace {

struct Padding {
  BatchSize size;
  std::vector<PartialShape> shapes;  // by component; unknown sizes become the largest
  std::vector<Tensor> values;        // scalars
};

// Copies `from` to the beginning of each dimension of `to`, a row of a batch with shape `row`.
void CopyCorner(const Tensor& from, const Shape& row, void* to) {
  const int rank = row.rank();
  if (from.num_elements() == 0) return;
  const int64_t run = rank == 0 ? 1 : from.dim(rank - 1);
  Dims at(std::max(rank - 1, 0), 0);
  for (int64_t source = 0; source < from.num_elements(); source += run) {
    int64_t target = 0;
    for (int d = 0; d < rank; ++d) target = target * row.dim(d) + (d < rank - 1 ? at[d] : 0);
    CopyElements(from.dtype(), ElementAt(from.raw_data(), from.dtype(), source),
                 ElementAt(to, from.dtype(), target), run);
    for (int d = rank - 2; d >= 0 && ++at[d] == from.dim(d); --d) at[d] = 0;
  }
}

// Returns the shape of the padded rows of a component. InvalidArgument if an element does not have
// the rank of `wanted`, DataLoss if it exceeds a size of `wanted`.
StatusOr<Shape> RowShape(const std::vector<Element>& elements, size_t component,
                         const PartialShape& wanted) {
  Dims dims(wanted.dims().begin(), wanted.dims().end());
  for (const Element& element : elements) {
    const Shape& shape = element[component].shape();
    if (shape.rank() != wanted.rank()) {
      return InvalidArgument("All elements in a batch must have the same rank as the padded shape ",
                             "for component", component, ": expected rank ", wanted.rank(),
                             " but got element with rank ", shape.rank());
    }
    for (int d = 0; d < shape.rank(); ++d) {
      if (wanted.dim(d) < 0) {
        dims[d] = std::max(dims[d], shape.dim(d));
      } else if (shape.dim(d) > wanted.dim(d)) {
        return DataLoss("Attempted to pad to a smaller size than the input element.");
      }
    }
  }
  return Shape::Make(dims);
}

StatusOr<Tensor> PadComponent(const std::vector<Element>& elements, size_t component,
                              const Padding& padding) {
  const Tensor& value = padding.values[component];
  for (const Element& element : elements) {
    if (element[component].dtype() == value.dtype()) continue;
    return InvalidArgument("component ", component, " is ", Name(element[component].dtype()),
                           ", its padding value ", Name(value.dtype()));
  }
  ASSIGN_OR_RETURN(const Shape row, RowShape(elements, component, padding.shapes[component]));
  Dims dims = {static_cast<int64_t>(elements.size())};
  dims.insert(dims.end(), row.dims().begin(), row.dims().end());
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  ASSIGN_OR_RETURN(Tensor batch, NewTensor(value.dtype(), shape));
  FillElements(value.dtype(), value.raw_data(), batch.mutable_raw_data(), batch.num_elements());
  for (size_t i = 0; i < elements.size(); ++i) {
    CopyCorner(elements[i][component], row,
               ElementAt(batch.mutable_raw_data(), value.dtype(),
                         static_cast<int64_t>(i) * row.num_elements()));
  }
  return batch;
}

ElementSpec SpecOf(const ElementSpec& input, const Padding& padding) {
  ElementSpec spec{.types = input.types};
  for (const PartialShape& shape : padding.shapes) {
    PartialShape batch;
    batch.AddDim(padding.size.drop_remainder ? padding.size.elements : PartialShape::kUnknown);
    for (const int64_t dim : shape.dims()) batch.AddDim(dim);
    spec.shapes.push_back(batch);
  }
  return spec;
}

class PaddedBatchDataset final : public Dataset {
 public:
  PaddedBatchDataset(DatasetPtr input, Padding padding)
      : Dataset(SpecOf(input->spec(), padding), {input}), padding_(std::move(padding)) {}
  const char* Name() const override { return "PaddedBatch"; }
  int64_t Cardinality() const override { return padding_.size.BatchesOf(input().Cardinality()); }
  StatusOr<IteratorPtr> NewIterator(const IteratorContext& ctx) const override {
    return NewIteratorOf<Iterator>(this, ctx);
  }

 private:
  class Iterator final : public IteratorOf<PaddedBatchDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status GetNext(const IteratorContext& ctx, Element* element, bool* end) override {
      const Padding& padding = dataset().padding_;
      std::vector<Element> elements;
      const auto check = [&](const Element& next) {
        if (next.size() == padding.shapes.size()) return OkStatus();
        return InvalidArgument("an element has ", next.size(), " components, padded_shapes ",
                               padding.shapes.size());
      };
      RETURN_IF_ERROR(padding.size.Read(ctx, *input_, check, &elements, end));
      if (*end) return OkStatus();
      element->clear();
      for (size_t i = 0; i < padding.shapes.size(); ++i) {
        ASSIGN_OR_RETURN(Tensor component, PadComponent(elements, i, padding));
        element->push_back(std::move(component));
      }
      return OkStatus();
    }
  };

  const Padding padding_;
};

template <bool kMayDrop>
class PaddedBatchKernel final : public DatasetKernel {
  StatusOr<DatasetPtr> MakeDataset(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
    Padding padding;
    ASSIGN_OR_RETURN(padding.size.elements, ScalarInput<int64_t>(ctx, 1, "batch_size"));
    if (padding.size.elements <= 0) return InvalidArgument("Batch size must be greater than zero.");
    const int count = static_cast<int>(input->spec().types.size());
    if (ctx.num_inputs() != 2 + 2 * count + (kMayDrop ? 1 : 0)) {
      return InvalidArgument("padded_shapes and padding_values must have one entry for each of ",
                             "the ", count, " components of the dataset");
    }
    for (int i = 0; i < count; ++i) {
      RETURN_IF_ERROR(AddComponent(ctx.input(2 + i), ctx.input(2 + count + i),
                                   input->spec().types[i], &padding));
    }
    if (kMayDrop) {
      ASSIGN_OR_RETURN(padding.size.drop_remainder,
                       ScalarInput<bool>(ctx, ctx.num_inputs() - 1, "drop_remainder"));
    }
    return std::make_shared<PaddedBatchDataset>(std::move(input), std::move(padding));
  }

  static Status AddComponent(const Tensor& shape, const Tensor& value, DType dtype,
                             Padding* padding) {
    if (shape.rank() != 1) return InvalidArgument("All padded_shapes must be vectors");
    if (value.rank() != 0) return InvalidArgument("All padding values must be scalars");
    if (value.dtype() != dtype) {
      return InvalidArgument("Mismatched type between padding value ", padding->values.size(),
                             " and input dataset's component ", padding->values.size(), ": ",
                             Name(value.dtype()), " vs. ", Name(dtype));
    }
    ASSIGN_OR_RETURN(PartialShape made, PartialShape::Make(shape.flat<int64_t>()));
    if (made.rank() >= kMaxRank) return InvalidArgument("a padded shape has too many dimensions");
    padding->shapes.push_back(std::move(made));
    padding->values.push_back(value);
    return OkStatus();
  }
};

constexpr char kPaddedBatchDoc[] =
    "Batches `batch_size` elements of a dataset into one element. Each component is "
    "padded to `padded_shapes`; a dimension of -1 is padded to the largest in the "
    "batch.";

DatasetOp PaddedBatchOp(bool v2) {
  DatasetOp op{.doc = kPaddedBatchDoc,
               .inputs = {{"input_dataset", "variant"},
                          {"batch_size", "int64"},
                          {"padded_shapes", Repeat("N", "int64")},
                          {"padding_values", List("Toutput_types")}},
               .spec = false};
  if (v2) {
    op.inputs.push_back({"drop_remainder", "bool"});
    op.attrs.push_back({"parallel_copy", false});
  }
  op.attrs.push_back(TypesAttr("Toutput_types", 1));
  op.attrs.push_back({"output_shapes", ShapeList{}});
  op.attrs.push_back({"N", Ints{.min = 1}});
  return op;
}

OP(PaddedBatchDataset) { return PaddedBatchOp(false); }
OP(PaddedBatchDatasetV2) { return PaddedBatchOp(true); }
KERNEL_ANY_TYPE(PaddedBatchDataset, PaddedBatchKernel<false>);
KERNEL_ANY_TYPE(PaddedBatchDatasetV2, PaddedBatchKernel<true>);

}  // namespace
}  // namespace penstock
