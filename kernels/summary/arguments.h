// SPDX-License-Identifier: Apache-2.0
//
// Shared by the summary ops: reading tags and writing outputs.
#pragma once

#include <string>

#include "core/op/kernel.h"
#include "kernels/summary/summary.h"

namespace penstock {

inline StatusOr<std::string> TagInput(const KernelContext& ctx, const char* name = "Tags") {
  const Tensor& tag = ctx.input(0);
  if (tag.rank() == 0) return tag.scalar<std::string>();
  return InvalidArgument(name, " must be a scalar, has shape ", tag.shape().ToString());
}

// Returns the tag of image or sound `index` of a node that outputs at most `most` images or sounds.
inline std::string TagOfPart(const std::string& tag, const char* kind, int64_t index,
                             int64_t most) {
  return most > 1 ? StrCat(tag, "/", kind, "/", index) : StrCat(tag, "/", kind);
}

inline Status OutputSummary(KernelContext& ctx, const SummaryBuilder& summary) {
  Tensor* output;
  RETURN_IF_ERROR(ctx.Allocate(0, Shape(), &output));
  *output->mutable_data<std::string>() = summary.Serialize();
  return OkStatus();
}

}  // namespace penstock
