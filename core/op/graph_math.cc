// SPDX-License-Identifier: Apache-2.0
//
// Implements the math ops of gradient.h: each adds one node.
#include "core/op/gradient.h"

namespace penstock {

#define PENSTOCK_UNARY(Name) \
  Output Name(Output x) { return Call(#Name, {x}); }
#define PENSTOCK_BINARY(Name) \
  Output Name(Output x, Output y) { return Call(#Name, {x, y}); }

PENSTOCK_UNARY(Exp)
PENSTOCK_UNARY(Log)
PENSTOCK_UNARY(Sqrt)
PENSTOCK_UNARY(Rsqrt)
PENSTOCK_UNARY(Square)
PENSTOCK_UNARY(Tanh)
PENSTOCK_UNARY(Sigmoid)
PENSTOCK_UNARY(Sin)
PENSTOCK_UNARY(Cos)
PENSTOCK_UNARY(Sign)
PENSTOCK_UNARY(Abs)
PENSTOCK_UNARY(Reciprocal)
PENSTOCK_UNARY(ZerosLike)
PENSTOCK_UNARY(OnesLike)
PENSTOCK_UNARY(Identity)
PENSTOCK_UNARY(LogicalNot)
PENSTOCK_UNARY(StopGradient)
PENSTOCK_BINARY(Pow)
PENSTOCK_BINARY(Minimum)
PENSTOCK_BINARY(Maximum)
PENSTOCK_BINARY(Greater)
PENSTOCK_BINARY(GreaterEqual)
PENSTOCK_BINARY(Less)
PENSTOCK_BINARY(LessEqual)
PENSTOCK_BINARY(Equal)
PENSTOCK_BINARY(LogicalAnd)
PENSTOCK_BINARY(BroadcastTo)
#undef PENSTOCK_UNARY
#undef PENSTOCK_BINARY

Output Conj(Output x) { return IsComplex(x.dtype()) ? Call("Conj", {x}) : x; }
Output Cast(Output x, DType to) { return x.dtype() == to ? x : Call("Cast", {x}, {{"DstT", to}}); }
Output ShapeOf(Output x, DType out_type) { return Call("Shape", {x}, {{"out_type", out_type}}); }
Output SizeOf(Output x, DType out_type) { return Call("Size", {x}, {{"out_type", out_type}}); }
Output RankOf(Output x) { return Call("Rank", {x}); }
Output Reshape(Output x, Output shape) { return Call("Reshape", {x, shape}); }
Output Transpose(Output x, Output permutation) { return Call("Transpose", {x, permutation}); }
Output MatMul(Output a, Output b, bool transpose_a, bool transpose_b) {
  return Call("MatMul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}
Output Sum(Output x, Output axes, bool keep_dims) {
  return Call("Sum", {x, axes}, {{"keep_dims", keep_dims}});
}
Output Mean(Output x, Output axes, bool keep_dims) {
  return Call("Mean", {x, axes}, {{"keep_dims", keep_dims}});
}
Output Select(Output condition, Output x, Output y) { return Call("Select", {condition, x, y}); }
Output ExpandDims(Output x, Output axis) { return Call("ExpandDims", {x, axis}); }
Output Fill(Output dims, Output value) { return Call("Fill", {dims, value}); }
Output AddN(const Outputs& xs) { return xs.size() == 1 ? xs[0] : Call("AddN", {xs}); }
Output Range(Output start, Output limit, Output delta) {
  return Call("Range", {start, limit, delta});
}
Output Gather(Output params, Output indices, Output axis) {
  return Call("GatherV2", {params, indices, axis});
}
Output ConcatV2(const Outputs& values, Output axis) { return Call("ConcatV2", {values, axis}); }
Output Pack(const Outputs& values, int64_t axis) {
  return Call("Pack", {values}, {{"axis", axis}});
}

}  // namespace penstock
