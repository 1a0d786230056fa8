// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/element_shapes.h"

#include <vector>

namespace penstock {

Status ElementShapes(ShapeScope& s) {
  const auto& shapes = s.attr<std::vector<PartialShape>>("output_shapes");
  if (static_cast<int>(shapes.size()) != s.num_outputs()) {
    return InvalidArgument("output_shapes has ", shapes.size(), " elements, output_types ",
                           s.num_outputs());
  }
  for (int i = 0; i < s.num_outputs(); ++i) s.set_output(i, shapes[i]);
  return OkStatus();
}

}  // namespace penstock
