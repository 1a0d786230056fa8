// SPDX-License-Identifier: Apache-2.0
#include "kernels/data/element_batch.h"

#include <algorithm>

#include "kernels/array/elements.h"

namespace penstock {
namespace {

StatusOr<Tensor> CopyRow(const Tensor& batch, int64_t row) {
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(batch.shape().dims().subspan(1)));
  ASSIGN_OR_RETURN(Tensor copy, Tensor::Make(CpuAllocator(), batch.dtype(), shape));
  CopyElements(batch.dtype(),
               ElementAt(batch.raw_data(), batch.dtype(), row * shape.num_elements()),
               copy.mutable_raw_data(), shape.num_elements());
  return copy;
}

// Copies `from` to the beginning of a box of shape `box`. REQUIRES: the ranks are equal, and `from`
// fits into the box.
void CopyIntoBox(const Tensor& from, const Shape& box, void* to) {
  const Shape& shape = from.shape();
  if (shape.num_elements() == 0) return;
  if (shape == box) return CopyElements(from.dtype(), from.raw_data(), to, shape.num_elements());
  const int last = shape.rank() - 1;
  const int64_t run = shape.dim(last);
  Dims place(last, 0);
  for (int64_t done = 0; done < shape.num_elements(); done += run) {
    int64_t at = 0;
    for (int d = 0; d < last; ++d) at = at * box.dim(d) + place[d];
    CopyElements(from.dtype(), ElementAt(from.raw_data(), from.dtype(), done),
                 ElementAt(to, from.dtype(), at * box.dim(last)), run);
    for (int d = last - 1; d >= 0 && ++place[d] == shape.dim(d); --d) place[d] = 0;
  }
}

// Returns the least box that holds component c of all elements, and has at least the known sizes of
// `shape`. InvalidArgument if it has too many elements.
StatusOr<Shape> BoxOf(const std::vector<Element>& elements, int c, const PartialShape& shape) {
  Dims dims;
  for (const int64_t size : shape.dims()) dims.push_back(std::max<int64_t>(size, 0));
  for (const Element& element : elements) {
    for (int d = 0; d < element[c].rank(); ++d) dims[d] = std::max(dims[d], element[c].dim(d));
  }
  return Shape::Make(dims);
}

}  // namespace

Status CheckComponents(const Element& components, const std::vector<PartialShape>& shapes,
                       bool batched) {
  for (size_t c = 0; c < shapes.size(); ++c) {
    PartialShape wanted = shapes[c];
    if (batched) {
      wanted = PartialShape({PartialShape::kUnknown});
      for (const int64_t size : shapes[c].dims()) wanted.AddDim(size);
    }
    if (wanted.Compatible(components[c].shape())) continue;
    return InvalidArgument("Shape mismatch in tuple component ", c, ". Expected ",
                           wanted.ToString(), ", got ", components[c].shape().ToString());
  }
  return OkStatus();
}

StatusOr<std::vector<Element>> SplitBatch(absl::Span<const Tensor> components) {
  for (size_t c = 0; c < components.size(); ++c) {
    if (components[c].rank() >= 1 && components[c].dim(0) == components[0].dim(0)) continue;
    return InvalidArgument(
        "all components of a batch must have the same first dimension; component ", c,
        " has shape ", components[c].shape().ToString(), ", the first one ",
        components[0].shape().ToString());
  }
  std::vector<Element> elements(components[0].dim(0));
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i].reserve(components.size());
    for (const Tensor& component : components) {
      ASSIGN_OR_RETURN(Tensor row, CopyRow(component, static_cast<int64_t>(i)));
      elements[i].push_back(std::move(row));
    }
  }
  return elements;
}

Status StackElements(const std::vector<Element>& elements, int c, const PartialShape& shape,
                     KernelContext& ctx, int output) {
  ASSIGN_OR_RETURN(const Shape box, BoxOf(elements, c, shape));
  Dims dims(box.dims().begin(), box.dims().end());
  dims.insert(dims.begin(), static_cast<int64_t>(elements.size()));
  ASSIGN_OR_RETURN(const Shape batch, Shape::Make(dims));
  Tensor* stacked = nullptr;
  RETURN_IF_ERROR(ctx.Allocate(output, batch, &stacked));
  const DType dtype = stacked->dtype();
  for (size_t i = 0; i < elements.size(); ++i) {
    const Tensor& element = elements[i][c];
    void* const slot =
        ElementAt(stacked->mutable_raw_data(), dtype, static_cast<int64_t>(i) * box.num_elements());
    if (element.shape() != box) ZeroElements(dtype, slot, box.num_elements());
    CopyIntoBox(element, box, slot);
  }
  return OkStatus();
}

}  // namespace penstock
