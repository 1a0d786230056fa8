// SPDX-License-Identifier: Apache-2.0
#include "kernels/math/accumulate.h"

#include <utility>

#include "core/tensor/type_lists.h"
#include "kernels/array/elements.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/add.h"

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

StatusOr<const ArithmeticVariant*> Arithmetic(const Variant& variant) {
  if (variant.value == nullptr) return InvalidArgument("an element that nobody has set has no sum");
  const auto* value = dynamic_cast<const ArithmeticVariant*>(variant.value.get());
  if (value != nullptr) return value;
  return InvalidArgument("variants of type '", variant.value->TypeName(), "' have no sum");
}

Status AddVariants(KernelContext& ctx, Tensor* to, const Tensor& value) {
  ASSIGN_OR_RETURN(Tensor sums, ctx.Temporary(DType::kVariant, to->shape()));
  for (int64_t i = 0; i < sums.num_elements(); ++i) {
    ASSIGN_OR_RETURN(const ArithmeticVariant* x, Arithmetic(to->data<Variant>()[i]));
    ASSIGN_OR_RETURN(const ArithmeticVariant* y, Arithmetic(value.data<Variant>()[i]));
    ASSIGN_OR_RETURN(sums.mutable_data<Variant>()[i], x->Plus(ctx, *y));
  }
  *to = std::move(sums);
  return OkStatus();
}

}  // namespace

StatusOr<Tensor> ZerosOf(KernelContext& ctx, const Tensor& x) {
  ASSIGN_OR_RETURN(Tensor zeros, ctx.Temporary(x.dtype(), x.shape()));
  if (x.dtype() != DType::kVariant) {
    Zero(zeros, ctx.threads());
    return zeros;
  }
  for (int64_t i = 0; i < zeros.num_elements(); ++i) {
    ASSIGN_OR_RETURN(const ArithmeticVariant* value, Arithmetic(x.data<Variant>()[i]));
    ASSIGN_OR_RETURN(zeros.mutable_data<Variant>()[i], value->ZerosLike(ctx));
  }
  return zeros;
}

Status AddInPlace(KernelContext& ctx, Tensor* to, const Tensor& value) {
  if (to->dtype() != value.dtype() || to->shape() != value.shape()) {
    return InvalidArgument("there is no sum of a tensor ", Name(to->dtype()),
                           to->shape().ToString(), " and a tensor ", Name(value.dtype()),
                           value.shape().ToString());
  }
  if (to->dtype() == DType::kVariant) return AddVariants(ctx, to, value);
  const BinaryLoop* const add = FindLoop<NUMBER_TYPES>(to->dtype());
  if (add == nullptr) {
    return InvalidArgument("there is no sum of tensors of type ", Name(to->dtype()));
  }
  const Tensor old = std::move(*to);
  if (old.unique() &&
      old.buffer()->allocator() != nullptr) {  // the buffer is not memory of another library
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
