// SPDX-License-Identifier: Apache-2.0
#include "kernels/linalg/matrices.h"

#include <algorithm>

#include "core/base/mutex.h"
#include "core/op/shape_scope.h"
#include "kernels/engine/broadcast_index.h"

namespace penstock {
namespace {

// Returns the dimensions of the batch: all but the last two.
absl::Span<const int64_t> BatchOf(const Shape& shape) {
  return shape.dims().subspan(0, shape.rank() - 2);
}

StatusOr<Dims> BatchDims(const KernelContext& ctx, int num_matrices, bool broadcasts) {
  const Shape& first = ctx.input(0).shape();
  PartialShape batch{BatchOf(first)};
  for (int i = 1; i < num_matrices; ++i) {
    const PartialShape other{BatchOf(ctx.input(i).shape())};
    if (broadcasts) {
      ASSIGN_OR_RETURN(batch, Broadcast(batch, other));
    } else if (!(other == batch)) {
      return InvalidArgument("all inputs must have the same batch dimensions: shapes ",
                             first.ToString(), " and ", ctx.input(i).shape().ToString());
    }
  }
  return Dims(batch.dims().begin(), batch.dims().end());
}

}  // namespace

Status CheckSquare(const MatrixSize& size) {
  if (size.square()) return OkStatus();
  return InvalidArgument("Input matrix must be square: ", size.rows, " rows and ", size.cols,
                         " columns");
}

Status MatrixKernelBase::Compute(KernelContext& ctx) {
  MatrixSizes in_sizes, out_sizes;
  double nanos = 1;
  for (int i = 0; i < num_matrices_; ++i) {
    const Shape& shape = ctx.input(i).shape();
    if (shape.rank() < 2) {
      return InvalidArgument("Input tensor ", i, " must have rank >= 2, has shape ",
                             shape.ToString());
    }
    in_sizes.push_back({shape.dim(shape.rank() - 2), shape.dim(shape.rank() - 1)});
    const double rows = in_sizes[i].rows, cols = in_sizes[i].cols;
    nanos += rows * cols * std::min(rows, cols);
  }
  ASSIGN_OR_RETURN(const Dims batch, BatchDims(ctx, num_matrices_, broadcasts_));
  double scalar = 0;
  RETURN_IF_ERROR(ReadScalar(ctx, &scalar));
  OutputDims dims;
  RETURN_IF_ERROR(Outputs(in_sizes, &dims));
  std::vector<Tensor*> outputs(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    Dims all = batch;
    all.insert(all.end(), dims[i].begin(), dims[i].end());
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(all));
    RETURN_IF_ERROR(ctx.Allocate(static_cast<int>(i), shape, &outputs[i]));
    out_sizes.push_back({dims[i].empty() ? 1 : dims[i][0], dims[i].size() < 2 ? 1 : dims[i][1]});
  }
  const int64_t element = static_cast<int64_t>(SizeOf(ctx.input(0).dtype()));
  Mutex mu;
  Status failed;
  const auto compute = [&](int64_t begin, int64_t end) {
    std::vector<const void*> in(in_sizes.size());
    std::vector<void*> out(out_sizes.size());
    for (int64_t m = begin; m < end; ++m) {
      for (size_t i = 0; i < in.size(); ++i) {
        const Tensor& input = ctx.input(static_cast<int>(i));
        const int64_t at = BroadcastIndex(m, batch, BatchOf(input.shape()));
        in[i] = static_cast<const char*>(input.raw_data()) +
                at * in_sizes[i].rows * in_sizes[i].cols * element;
      }
      for (size_t i = 0; i < out.size(); ++i) {
        out[i] = static_cast<char*>(outputs[i]->mutable_raw_data()) +
                 m * out_sizes[i].rows * out_sizes[i].cols *
                     static_cast<int64_t>(SizeOf(outputs[i]->dtype()));
      }
      const Status status = ComputeRaw(in, in_sizes, out, out_sizes, scalar);
      if (status.ok()) continue;
      MutexLock lock(mu);
      failed.Update(status);
      return;
    }
  };
  ASSIGN_OR_RETURN(const int64_t count, CheckedProduct(batch));
  ctx.threads().ParallelFor(count, nanos, compute);
  return failed;
}

}  // namespace penstock
