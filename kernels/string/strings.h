// SPDX-License-Identifier: Apache-2.0
//
// Helpers for ops on strings: the loop that such an op runs over its input, with one result for
// each string.
#pragma once

#include <string>

#include "core/op/kernel.h"

namespace penstock {

// Allocates output 0, of the shape of input 0 and of type T, and sets each element by fn(string,
// &element). Returns the first error.
template <class T, class Fn>
Status MapStrings(KernelContext& ctx, Fn fn) {
  const Tensor& input = ctx.input(0);
  Tensor* output;
  RETURN_IF_ERROR(ctx.Allocate(0, input.shape(), &output));
  const auto from = input.flat<std::string>();
  T* to = output->mutable_data<T>();
  for (size_t i = 0; i < from.size(); ++i) RETURN_IF_ERROR(fn(from[i], &to[i]));
  return OkStatus();
}

// Returns input i, a string scalar. Errors name it `name`.
inline StatusOr<std::string> StringScalar(const KernelContext& ctx, int i, string_view name) {
  if (ctx.input(i).rank() == 0) return ctx.input(i).scalar<std::string>();
  return InvalidArgument(name, " must be a scalar, has shape ", ctx.input(i).shape().ToString());
}

}  // namespace penstock
