// SPDX-License-Identifier: Apache-2.0
#include "kernels/nn/conv_geometry.h"

#include <algorithm>

namespace penstock {

StatusOr<ConvGeometry> ConvGeometry::Of(const WindowAttrs& window, const Shape& image,
                                        const Shape& filter) {
  const int rank = window.rank;
  if (image.rank() != rank) {
    return InvalidArgument("input must be a batch of images with ", rank,
                           " dimensions, channels last, has shape ", image.ToString());
  }
  if (filter.rank() != rank) {
    return InvalidArgument("filter must have ", rank,
                           " dimensions, the last two in_channels and out_channels, has shape ",
                           filter.ToString());
  }
  const int64_t in_channels = image.dim(rank - 1), out_channels = filter.dim(rank - 1);
  const int64_t each = filter.dim(rank - 2);  // input channels of a group
  const int64_t groups = each > 0 && rank == 4 ? std::max<int64_t>(in_channels / each, 1) : 1;
  if (in_channels != each * groups) {
    return InvalidArgument("input depth must ", rank == 4 ? "be evenly divisible by" : "equal",
                           " filter depth: ", in_channels, " vs ", each, ", the filter has shape ",
                           filter.ToString());
  }
  if (out_channels % groups != 0) {
    return InvalidArgument("the filter ", filter.ToString(), " has ", out_channels,
                           " output channels, which ", groups, " groups cannot share");
  }
  ConvGeometry g{.batch = image.dim(0),
                 .in_channels = in_channels,
                 .out_channels = out_channels,
                 .volumes = rank == 5,
                 .groups = groups};
  Window* windows[] = {&g.d, &g.h, &g.w};
  for (int dim = 1; dim < rank - 1; ++dim) {
    ASSIGN_OR_RETURN(*windows[dim + 4 - rank],
                     window.MakeWindow(dim, image.dim(dim), filter.dim(dim - 1)));
  }
  const int64_t out[] = {g.batch, g.d.out, g.h.out, g.w.out, g.out_channels};
  RETURN_IF_ERROR(CheckedProduct(out).status());
  // Checks that the unrolled windows of one image have a supported size.
  const int64_t rows[] = {g.d.out,  g.h.out,  g.w.out,       g.d.size,
                          g.h.size, g.w.size, g.in_channels, 8};
  RETURN_IF_ERROR(CheckedProduct(rows).status());
  return g;
}

}  // namespace penstock
