// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/rows.h"

#include "kernels/array/elements.h"

namespace penstock {
namespace {

StatusOr<Tensor> StackComponent(const std::vector<Element>& elements, size_t component) {
  const Tensor& first = elements[0][component];
  const int64_t size = first.num_elements();
  Dims dims = {static_cast<int64_t>(elements.size())};
  dims.insert(dims.end(), first.shape().dims().begin(), first.shape().dims().end());
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  ASSIGN_OR_RETURN(Tensor batch, NewTensor(first.dtype(), shape));
  for (size_t i = 0; i < elements.size(); ++i) {
    const Tensor& row = elements[i][component];
    if (row.dtype() != first.dtype()) {
      return InvalidArgument("Cannot batch tensors of different types in component ", component,
                             ": ", Name(first.dtype()), " and ", Name(row.dtype()));
    }
    if (row.shape() != first.shape()) {
      return InvalidArgument("Cannot batch tensors with different shapes in component ", component,
                             ". First element had shape ", first.shape().ToString(),
                             " and element ", i, " had shape ", row.shape().ToString(), ".");
    }
    CopyElements(row.dtype(), row.raw_data(),
                 ElementAt(batch.mutable_raw_data(), row.dtype(), static_cast<int64_t>(i) * size),
                 size);
  }
  return batch;
}

}  // namespace

StatusOr<Tensor> CopyRow(const Tensor& tensor, int64_t index) {
  Shape shape = tensor.shape();
  shape.RemoveDim(0);
  ASSIGN_OR_RETURN(Tensor row, NewTensor(tensor.dtype(), shape));
  CopyElements(tensor.dtype(),
               ElementAt(tensor.raw_data(), tensor.dtype(), index * row.num_elements()),
               row.mutable_raw_data(), row.num_elements());
  return row;
}

StatusOr<Element> StackElements(const std::vector<Element>& elements) {
  for (const Element& element : elements) {
    if (element.size() == elements[0].size()) continue;
    return InvalidArgument("Cannot batch elements with different numbers of components: ",
                           elements[0].size(), " and ", element.size());
  }
  Element batch;
  for (size_t i = 0; i < elements[0].size(); ++i) {
    ASSIGN_OR_RETURN(Tensor component, StackComponent(elements, i));
    batch.push_back(std::move(component));
  }
  return batch;
}

Status CheckBatch(const Element& batch, const ElementSpec& spec) {
  if (batch.empty() || batch.size() != spec.types.size()) {
    return InvalidArgument("a batch must have ", spec.types.size(), " components, has ",
                           batch.size());
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].dtype() != spec.types[i]) {
      return InvalidArgument("component ", i, " must have type ", Name(spec.types[i]), ", has ",
                             Name(batch[i].dtype()));
    }
    if (batch[i].rank() == 0) {
      return InvalidArgument("Input element must have a non-scalar value in each component.");
    }
    if (batch[i].dim(0) != batch[0].dim(0)) {
      return InvalidArgument("Input element must have the same batch size in each component. ",
                             "Component 0 had size ", batch[0].dim(0), " but component ", i,
                             " had size ", batch[i].dim(0), ".");
    }
  }
  return OkStatus();
}

StatusOr<Element> JoinBatches(std::vector<Element> batches) {
  if (batches.size() == 1) return std::move(batches[0]);
  Element joined;
  for (size_t c = 0; c < batches[0].size(); ++c) {
    Shape shape = batches[0][c].shape();
    int64_t rows = 0;
    for (const Element& batch : batches) {
      Shape expected = shape, found = batch[c].shape();
      if (found.rank() != expected.rank()) found = Shape();
      if (found.rank() > 0) found.set_dim(0, expected.dim(0));
      if (!(found == expected)) {
        return InvalidArgument("rows of component ", c, " have different shapes: batches of ",
                               shape.ToString(), " and ", batch[c].shape().ToString());
      }
      rows += batch[c].dim(0);
    }
    Dims dims(shape.dims().begin(), shape.dims().end());
    dims[0] = rows;
    ASSIGN_OR_RETURN(const Shape whole, Shape::Make(dims));
    const DType dtype = batches[0][c].dtype();
    ASSIGN_OR_RETURN(Tensor out, NewTensor(dtype, whole));
    int64_t at = 0;
    for (const Element& batch : batches) {
      CopyElements(dtype, batch[c].raw_data(), ElementAt(out.mutable_raw_data(), dtype, at),
                   batch[c].num_elements());
      at += batch[c].num_elements();
    }
    joined.push_back(std::move(out));
  }
  return joined;
}

ElementSpec BatchSpec(const ElementSpec& spec, int64_t count) {
  ElementSpec batch{.types = spec.types};
  for (const PartialShape& shape : spec.shapes) {
    PartialShape rows;
    if (shape.known_rank() && shape.rank() < kMaxRank) {
      rows.AddDim(count);
      for (const int64_t dim : shape.dims()) rows.AddDim(dim);
    }
    batch.shapes.push_back(rows);
  }
  return batch;
}

}  // namespace penstock
