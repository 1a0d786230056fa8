// SPDX-License-Identifier: Apache-2.0
//
// The sum of two tensors of a dtype that is known at run time.
#pragma once

#include "core/op/kernel.h"

namespace penstock {

// *to += value, in place where nobody else holds *to's buffer. REQUIRES equal dtypes and shapes.
// InvalidArgument for types that have no sum.
Status AddInPlace(KernelContext& ctx, Tensor* to, const Tensor& value);

}  // namespace penstock
