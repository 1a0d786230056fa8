// SPDX-License-Identifier: Apache-2.0
//
// LogicalAnd, LogicalOr, LogicalNot on bools; BitwiseAnd, -Or, -Xor, Invert, LeftShift and
// RightShift, PopulationCount on integers.
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/engine/elementwise.h"
#include "kernels/math/forms.h"

namespace penstock {
namespace {

struct PopulationCountFn {
  template <class T>
  DEVICE_FN uint8_t operator()(T x) const {
    uint8_t count = 0;
    for (auto bits = static_cast<std::make_unsigned_t<T>>(x); bits != 0; ++count) {
      bits &= static_cast<decltype(bits)>(bits - 1);  // clears the lowest bit
    }
    return count;
  }
};

// Uses & and | instead of && and ||, so that the compiler vectorises the loops. Works for bool,
// too.
struct AndFn {
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    return x & y;
  }
};

struct OrFn {
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    return x | y;
  }
};

struct XorFn {
  template <class T>
  DEVICE_FN T operator()(T x, T y) const {
    return x ^ y;
  }
};

struct NotFn {
  DEVICE_FN bool operator()(bool x) const { return !x; }
};

struct InvertFn {
  template <class T>
  DEVICE_FN T operator()(T x) const {
    return static_cast<T>(~x);
  }
};

// Shifts by a negative count, or by the width or more, are undefined in C++, so counts are clamped.
template <class T>
DEVICE_FN int ClampedShift(T count) {
  constexpr int kLast = 8 * sizeof(T) - 1;
  return count < 0 ? 0 : count > T(kLast) ? kLast : static_cast<int>(count);
}

struct LeftShiftFn {
  template <class T>
  DEVICE_FN T operator()(T x, T count) const {
    return static_cast<T>(static_cast<Wrapping<T>>(x) << ClampedShift(count));
  }
};

struct RightShiftFn {
  template <class T>
  DEVICE_FN T operator()(T x, T count) const {
    return static_cast<T>(x >> ClampedShift(count));
  }
};

OpDef LogicalOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"x", "bool"}, {"y", "bool"}},
      .outputs = {{"z", "bool"}},
      .shape = BroadcastShape,
      .gradient = NoGradient,
      .commutative = true,
      .reuses = Reuse::kAny,
  };
}

}  // namespace

OP(LogicalAnd) { return LogicalOp("True where both x and y are true."); }
KERNEL_ANY_TYPE(LogicalAnd, BinaryElementwise<AndFn>::Kernel<bool>);
OP(LogicalOr) { return LogicalOp("True where x or y is true."); }
KERNEL_ANY_TYPE(LogicalOr, BinaryElementwise<OrFn>::Kernel<bool>);
OP(LogicalNot) {
  return {
      .doc = "True where x is false.",
      .inputs = {{"x", "bool"}},
      .outputs = {{"y", "bool"}},
      .shape = SameShape,
      .gradient = NoGradient,
      .reuses = Reuse::kFirst,
  };
}
KERNEL_ANY_TYPE(LogicalNot, UnaryElementwise<NotFn>::Kernel<bool>);

OP(BitwiseAnd) {
  return CommutativeOp("The bits that are set in x and in y.", kIntegers, NoGradient);
}
KERNEL(BitwiseAnd, BinaryElementwise<AndFn>::Kernel, INTEGER_TYPES);
OP(BitwiseOr) {
  return CommutativeOp("The bits that are set in x or in y.", kIntegers, NoGradient);
}
KERNEL(BitwiseOr, BinaryElementwise<OrFn>::Kernel, INTEGER_TYPES);
OP(BitwiseXor) { return CommutativeOp("The bits in which x and y differ.", kIntegers, NoGradient); }
KERNEL(BitwiseXor, BinaryElementwise<XorFn>::Kernel, INTEGER_TYPES);
OP(Invert) { return UnaryOp("x with every bit flipped.", kIntegers, NoGradient); }
KERNEL(Invert, UnaryElementwise<InvertFn>::Kernel, INTEGER_TYPES);
OP(PopulationCount) {
  OpDef op = UnaryOpTo("uint8", "The number of bits of x that are set.", kIntegers, NoGradient);
  // The output may use the buffer of the argument only if T is uint8, the type of the output.
  op.reuses = Reuse::kFirst;
  return op;
}
KERNEL(PopulationCount, UnaryElementwise<PopulationCountFn>::Kernel, INTEGER_TYPES);
OP(LeftShift) {
  return BinaryOp("x shifted left by y bits; y is clamped to [0, width).", kIntegers, NoGradient);
}
KERNEL(LeftShift, BinaryElementwise<LeftShiftFn>::Kernel, INTEGER_TYPES);
OP(RightShift) {
  return BinaryOp("x shifted right by y bits, keeping the sign; y is clamped to [0, width).",
                  kIntegers, NoGradient);
}
KERNEL(RightShift, BinaryElementwise<RightShiftFn>::Kernel, INTEGER_TYPES);

}  // namespace penstock
