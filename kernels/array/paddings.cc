// SPDX-License-Identifier: Apache-2.0
#include "kernels/array/paddings.h"

#include <utility>

#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/strided_copy.h"

namespace penstock {

StatusOr<Paddings> Paddings::Of(const Tensor& tensor, int rank) {
  Paddings pads;
  if (tensor.rank() == 2 && tensor.dim(0) != rank) {
    return InvalidArgument("The first dimension of paddings must be the rank of inputs, ", rank,
                           "; paddings has shape ", tensor.shape().ToString());
  }
  ASSIGN_OR_RETURN(pads.pairs_, IntPairs(tensor, "paddings", rank));
  for (int i = 0; i < rank; ++i) {
    if (pads.before(i) < 0 || pads.after(i) < 0) {
      return InvalidArgument("Paddings must be non-negative: ", pads.before(i), " ", pads.after(i));
    }
  }
  return pads;
}

Dims Paddings::Padded(absl::Span<const int64_t> dims) const {
  Dims padded;
  for (size_t i = 0; i < dims.size(); ++i) {
    padded.push_back(AddDims(AddDims(before(i), dims[i]), after(i)));
  }
  return padded;
}

void CopyInner(const Paddings& pads, const Tensor& inner, Tensor& padded, Scheduler& threads) {
  const Dims from = DenseStrides(inner.shape().dims()), to = DenseStrides(padded.shape().dims());
  StridedCopy copy;
  int64_t corner = 0;
  for (int i = 0; i < inner.rank(); ++i) {
    copy.Add(inner.dim(i), from[i], to[i]);
    corner += pads.before(i) * to[i];
  }
  CopyStrided(inner.dtype(), copy, inner.raw_data(),
              ElementAt(padded.mutable_raw_data(), padded.dtype(), corner), threads);
}

Status PaddedShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape matrix, s.WithRank(1, 2));
  if (matrix.dim(1) >= 0 && matrix.dim(1) != 2) {
    return InvalidArgument("paddings must have 2 columns, has shape ", matrix.ToString());
  }
  const PartialShape& input = s.input(0);
  const int64_t rank = input.known_rank() ? input.rank() : matrix.dim(0);
  if (rank < 0) return OkStatus();
  if (rank > kMaxRank || (matrix.dim(0) >= 0 && matrix.dim(0) != rank)) {
    return InvalidArgument("The first dimension of paddings must be the rank of inputs, ", rank,
                           "; paddings has shape ", matrix.ToString());
  }
  if (s.constant(1) == nullptr || !input.known_rank()) {
    s.set_output(0, PartialShape::UnknownOfRank(static_cast<int>(rank)));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const Paddings pads, Paddings::Of(*s.constant(1), input.rank()));
  return SetOutput(s, 0, pads.Padded(input.dims()));
}

}  // namespace penstock
