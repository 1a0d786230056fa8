// SPDX-License-Identifier: Apache-2.0
#include "kernels/dataset/shared_handle.h"

#include <utility>

#include "core/op/gradient.h"
#include "core/op/shape_scope.h"

namespace penstock {

Tensor SharedHandle(const KernelContext& ctx, std::string name, const char* type,
                    std::shared_ptr<Resource> resource) {
  return Tensor::Scalar(ResourceHandle{.device = ctx.device_name(),
                                       .container = kDefaultContainer,
                                       .name = std::move(name),
                                       .type = type,
                                       .resource = std::move(resource)});
}

OpDef SharedHandleOp(const char* doc, std::vector<ArgDef> inputs, std::vector<ArgDef> outputs) {
  return {
      .doc = doc,
      .inputs = std::move(inputs),
      .outputs = std::move(outputs),
      .shape = ScalarShape,
      .gradient = NoGradient,
      .stateful = true,
      .untestable_alone = "returns an object that datasets share: kernels/dataset has its tests",
  };
}

OpDef DeleteSharedOp(const char* doc) {
  return SharedHandleOp(doc, {{"handle", "resource"}, {"deleter", "variant"}}, {});
}

}  // namespace penstock
