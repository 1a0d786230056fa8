// SPDX-License-Identifier: Apache-2.0
#include "kernels/math/forms.h"

#include "core/op/shape_scope.h"

namespace penstock {

OpDef UnaryOp(const char* doc, const DTypes& types, GradientFn gradient) {
  OpDef op = UnaryOpTo("T", doc, types, std::move(gradient));
  op.reuses = Reuse::kFirst;
  return op;
}

OpDef UnaryOpTo(const char* output_type, const char* doc, const DTypes& types,
                GradientFn gradient) {
  return {
      .doc = doc,
      .inputs = {{"x", "T"}},
      .outputs = {{"y", output_type}},
      .types = {{"T", types}},
      .shape = SameShape,
      .gradient = std::move(gradient),
  };
}

OpDef BinaryOp(const char* doc, const DTypes& types, GradientFn gradient) {
  return {
      .doc = doc,
      .inputs = {{"x", "T"}, {"y", "T"}},
      .outputs = {{"z", "T"}},
      .types = {{"T", types}},
      .shape = BroadcastShape,
      .gradient = std::move(gradient),
      .reuses = Reuse::kAny,
  };
}

OpDef CommutativeOp(const char* doc, const DTypes& types, GradientFn gradient) {
  OpDef op = BinaryOp(doc, types, std::move(gradient));
  op.commutative = true;
  return op;
}

OpDef Comparison(const char* doc, const DTypes& types) {
  OpDef op = BinaryOp(doc, types, NoGradient);
  op.outputs = {{"z", "bool"}};
  op.reuses = Reuse::kNone;
  return op;
}

OpDef WithExamples(std::vector<Example> examples, OpDef op) {
  op.examples = std::move(examples);
  return op;
}

OpDef GradientOp(const char* doc, const DTypes& types, GradientFn gradient) {
  OpDef op = BinaryOp(doc, types, std::move(gradient));
  op.inputs = {{"y", "T"}, {"dy", "T"}};
  return op;
}

}  // namespace penstock
