// SPDX-License-Identifier: Apache-2.0
//
// The forms that most mathematical ops have, so that a file states only what is special about each:
//   OP(Exp, (UnaryOp("y = e^x.", kFloatingOrComplex, [](const GradientScope& g) -> Gradients {
//        return {g.dy() * Conj(g.y())};
//      })));
#pragma once

#include "core/op/gradient.h"
#include "core/op/op_def.h"
#include "core/op/registry.h"

namespace penstock {

using Gradients = std::vector<Gradient>;

// y = f(x), element by element, in one type T.
OpDef UnaryOp(const char* doc, const DTypes& types, GradientFn gradient);
// y = f(x) with another, fixed type of output.
OpDef UnaryOpTo(const char* output_type, const char* doc, const DTypes& types, GradientFn gradient);
// z = f(x, y), with broadcasting, in one type T.
OpDef BinaryOp(const char* doc, const DTypes& types, GradientFn gradient);
OpDef CommutativeOp(const char* doc, const DTypes& types, GradientFn gradient);
// z = f(x, y), with broadcasting, from type T to bool; no gradient.
OpDef Comparison(const char* doc, const DTypes& types);
// `op` with calls that work, where matrices of 0.1 to 0.9 for every input do not.
OpDef WithExamples(std::vector<Example> examples, OpDef op);
// The gradient of a unary op from its output: z = f(y, dy).
OpDef GradientOp(const char* doc, const DTypes& types, GradientFn gradient);

}  // namespace penstock
