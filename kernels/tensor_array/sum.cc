// SPDX-License-Identifier: Apache-2.0
#include "kernels/tensor_array/sum.h"

#include "kernels/array/elements.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/add.h"
#include "kernels/math/types.h"

namespace penstock {
namespace {

template <class... Ts>
const BinaryLoop* FindLoop(DType dtype) {
  static constexpr BinaryLoop kLoops[] = {BinaryLoopOf<AddFn, Ts>()...};
  for (const BinaryLoop& loop : kLoops) {
    if (loop.in == dtype) return &loop;
  }
  return nullptr;
}

void AddRange(const BinaryLoop& add, const Tensor& x, const Tensor& y, int64_t begin, int64_t end,
              Tensor* z) {
  const auto at = [&](const Tensor& t, int64_t i) { return ElementAt(t.raw_data(), t.dtype(), i); };
  const auto to = [&](int64_t i) { return ElementAt(z->mutable_raw_data(), z->dtype(), i); };
  if (!IsFloat16(add.in)) {
    return add.run({at(x, begin), at(y, begin), to(begin), 1, end - begin});
  }
  float left[kFloat16Block], right[kFloat16Block];
  for (int64_t i = begin; i < end; i += kFloat16Block) {
    const int64_t n = std::min(kFloat16Block, end - i);
    Float16ToFloat(add.in, at(x, i), left, n);
    Float16ToFloat(add.in, at(y, i), right, n);
    add.run({left, right, left, 1, n});
    FloatToFloat16(add.in, left, to(i), n);
  }
}

}  // namespace

Status AddInPlace(KernelContext& ctx, Tensor* to, const Tensor& value) {
  const BinaryLoop* const add = FindLoop<NUMBER_TYPES>(to->dtype());
  if (add == nullptr) {
    return InvalidArgument("there is no sum of tensors of type ", Name(to->dtype()));
  }
  const Tensor old = std::move(*to);
  if (old.unique()) {
    *to = old;
  } else {
    ASSIGN_OR_RETURN(*to, ctx.Temporary(old.dtype(), old.shape()));
  }
  ctx.threads().ParallelFor(to->num_elements(), add->nanos, [&](int64_t begin, int64_t end) {
    AddRange(*add, old, value, begin, end, to);
  });
  return OkStatus();
}

}  // namespace penstock
