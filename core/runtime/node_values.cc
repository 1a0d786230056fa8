// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/node_values.h"

namespace penstock {

Status WrongOutputError(const Executable::Item& item, uint32_t i, DType found) {
  if (found == DType::kInvalid) {
    return Internal("the kernel of ", item.node->op_name(), " did not set output ", i);
  }
  return Internal("the kernel of ", item.node->op_name(), " produced output ", i, " as ",
                  Name(found), ", the graph says ", Name(item.output_dtypes[i]));
}

}  // namespace penstock
