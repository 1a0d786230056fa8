// SPDX-License-Identifier: Apache-2.0
#include "kernels/image/resize_kernel.h"

namespace penstock {

Status ResizeKernel::Init(const KernelInit& node) {
  RETURN_IF_ERROR(node.Attr("align_corners", &align_corners_));
  if (node.attrs.count("half_pixel_centers") == 0) return OkStatus();
  RETURN_IF_ERROR(node.Attr("half_pixel_centers", &half_pixel_centers_));
  if (!align_corners_ || !half_pixel_centers_) return OkStatus();
  return InvalidArgument("If half_pixel_centers is True, align_corners must be False.");
}

std::vector<AttrDef> GridAttrs() {
  return {{"align_corners", false}, {"half_pixel_centers", false}};
}

Attrs GridAttributes(const GradientScope& g) {
  return {{"align_corners", g.attrs().at("align_corners")},
          {"half_pixel_centers", g.attrs().at("half_pixel_centers")}};
}

std::vector<Gradient> ResizedBySize(const GradientScope& g, const char* op) {
  const Output size = Call("Slice", {ShapeOf(g.x(0)), g.Const(Tensor::Vector<int32_t>({1})),
                                     g.Const(Tensor::Vector<int32_t>({2}))});
  return {Call(op, {g.dy(), size}, GridAttributes(g)), Gradient()};
}

}  // namespace penstock
