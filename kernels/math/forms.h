// SPDX-License-Identifier: Apache-2.0
//
// Helpers that define mathematical ops, so that a file states only what differs between the ops:
//   OP(Exp, (UnaryOp("y = e^x.", kFloatingOrComplex, [](const GradientScope& g) -> Gradients {
//        return {g.dy() * Conj(g.y())};
//      })));
//
// Ops with one type T declare that kernels write the result into an input's buffer if they can
// (OpDef::reuses), as those of kernels/engine/elementwise.h do.
#pragma once

#include "core/op/gradient.h"
#include "core/op/op_def.h"
#include "core/op/registry.h"

namespace penstock {

using Gradients = std::vector<Gradient>;

// Defines y = f(x), element by element, with one type T.
OpDef UnaryOp(const char* doc, const DTypes& types, GradientFn gradient);
// Defines y = f(x) with another, fixed output type.
OpDef UnaryOpTo(const char* output_type, const char* doc, const DTypes& types, GradientFn gradient);
// Defines z = f(x, y), with broadcasting, with one type T.
OpDef BinaryOp(const char* doc, const DTypes& types, GradientFn gradient);
OpDef CommutativeOp(const char* doc, const DTypes& types, GradientFn gradient);
// Defines z = f(x, y), with broadcasting, from type T to bool; no gradient.
OpDef Comparison(const char* doc, const DTypes& types);
// Returns `op` with examples of valid calls, for ops that do not accept matrices of 0.1 to 0.9 for
// every input.
OpDef WithExamples(std::vector<Example> examples, OpDef op);
// Defines the gradient of a unary op, computed from its output: z = f(y, dy).
OpDef GradientOp(const char* doc, const DTypes& types, GradientFn gradient);

}  // namespace penstock
