// SPDX-License-Identifier: Apache-2.0
#include "kernels/training/update_op.h"

#include <string_view>

#include "kernels/array/gather_rows.h"

namespace penstock {
namespace {

ArgDef Hyperparameter(const char* name) {
  return {name, std::string_view(name) == "global_step" ? "int64" : "T"};
}

std::vector<ArgDef> InputsOf(const RuleSignature& rule, UpdateForm form) {
  const ArgType variable = form.variable == VariableForm::kRef ? Ref("T") : ArgType("resource");
  std::vector<ArgDef> inputs = {{"var", variable}};
  for (const char* slot : rule.slots) inputs.push_back({slot, variable});
  for (const char* name : rule.before) inputs.push_back(Hyperparameter(name));
  inputs.push_back({.name = rule.gradient, .type = "T", .is_gradient = true});
  if (form.gradient == GradientForm::kSparse) inputs.push_back({"indices", "Tindices"});
  for (const char* name : rule.after) inputs.push_back(Hyperparameter(name));
  return inputs;
}

// Returns an example with three rows of two; a sparse gradient has two rows.
Example ExampleOf(const std::vector<ArgDef>& inputs, const RuleSignature& rule, UpdateForm form) {
  const bool sparse = form.gradient == GradientForm::kSparse;
  Example example;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = inputs[i].name;
    ExampleTensor tensor;  // a scalar
    if (i <= rule.slots.size()) tensor.shape = {3, 2};
    if (name == rule.gradient) tensor.shape = {sparse ? 2 : 3, 2};
    if (name == "indices") tensor = {.shape = {2}, .values = {2, 0}};
    if (name == "lr_power") tensor.values = {-0.5};
    example.inputs.push_back({tensor});
  }
  return example;
}

// Checks the known shapes. InvalidArgument unless indices is a vector and the gradient has a row
// for each index.
Status MergeSparse(ShapeScope& s, const UpdateInputs& inputs, const PartialShape& variable) {
  ASSIGN_OR_RETURN(const PartialShape indices, s.WithRank(inputs.indices, 1));
  if (variable.rank() == 0) {
    return InvalidArgument("var must be at least 1 dimensional, is a scalar");
  }
  if (!variable.known_rank()) return OkStatus();
  PartialShape expected = variable;
  expected.set_dim(0, indices.dim(0));
  return Annotate(s.input(inputs.gradient).Merge(expected).status(), "the rows of the gradient");
}

ShapeFn ShapeOf(RuleSignature rule, UpdateForm form) {
  return [rule, form](ShapeScope& s) -> Status {
    const UpdateInputs inputs(rule, form.gradient);
    PartialShape variable = VariableShape(s, 0, form.variable);
    for (size_t i = 0; i < rule.slots.size(); ++i) {
      auto merged = variable.Merge(VariableShape(s, static_cast<int>(i) + 1, form.variable));
      RETURN_IF_ERROR(Annotate(merged.status(), rule.slots[i]));
      variable = *merged;
    }
    for (int i : inputs.hyperparameters) RETURN_IF_ERROR(s.WithRank(i, 0).status());
    if (form.gradient == GradientForm::kSparse) {
      RETURN_IF_ERROR(MergeSparse(s, inputs, variable));
    } else {
      auto merged = variable.Merge(s.input(inputs.gradient));
      RETURN_IF_ERROR(Annotate(merged.status(), rule.gradient));
      variable = *merged;
    }
    SetVariableOutput(s, form.variable, variable);
    return OkStatus();
  };
}

}  // namespace

OpDef UpdateOpDef(const char* name, const char* doc, const RuleSignature& rule, UpdateForm form,
                  DTypes types) {
  const bool ref = form.variable == VariableForm::kRef;
  OpDef op{
      .doc = doc,
      .inputs = InputsOf(rule, form),
      .types = {{"T", std::move(types)}},
      .attrs = {{"use_locking", false}},
      .shape = ShapeOf(rule, form),
      .gradient = NoGradient,
      .stateful = !ref,
      .update_rule = name,
  };
  op.examples = {ExampleOf(op.inputs, rule, form)};
  if (ref) op.outputs = {{"out", Ref("T")}};
  if (form.gradient == GradientForm::kSparse) op.types.push_back({"Tindices", kIndex});
  if (rule.flag != nullptr) op.attrs.push_back({rule.flag, rule.flag_default});
  return op;
}

UpdateInputs::UpdateInputs(const RuleSignature& rule, GradientForm form) {
  int next = 1 + static_cast<int>(rule.slots.size());
  for (size_t i = 0; i < rule.before.size(); ++i) hyperparameters.push_back(next++);
  gradient = next++;
  if (form == GradientForm::kSparse) indices = next++;
  for (size_t i = 0; i < rule.after.size(); ++i) hyperparameters.push_back(next++);
}

Slices ChangedRows(const Tensor& variable, const Tensor& indices) {
  const int64_t rows = variable.dim(0);
  return Slices::Rows(indices, rows == 0 ? 0 : variable.num_elements() / rows);
}

Status CheckSameShape(const RuleSignature& rule, absl::Span<Tensor* const> state) {
  for (size_t i = 1; i < state.size(); ++i) {
    if (state[i]->shape() != state[0]->shape()) {
      return InvalidArgument("var and ", rule.slots[i - 1],
                             " do not have the same shape: ", state[0]->shape().ToString(), " ",
                             state[i]->shape().ToString());
    }
  }
  return OkStatus();
}

Status CheckDense(const RuleSignature& rule, const Shape& variable, const Tensor& gradient) {
  if (gradient.shape() == variable) return OkStatus();
  return InvalidArgument("var and ", rule.gradient,
                         " do not have the same shape: ", variable.ToString(), " ",
                         gradient.shape().ToString());
}

Status CheckSparse(const Shape& variable, const Tensor& gradient, const Tensor& indices) {
  if (variable.rank() == 0) {
    return InvalidArgument("var must be at least 1 dimensional, is a scalar");
  }
  if (indices.rank() != 1) {
    return InvalidArgument("indices must be one-dimensional, have shape ",
                           indices.shape().ToString());
  }
  Shape expected = variable;
  // The variable has no elements, because a size is zero. The product of its other sizes may be too
  // large for a shape; Shape::Make checks that.
  if (expected.num_elements() == 0) {
    Dims dims(variable.dims().begin(), variable.dims().end());
    dims[0] = indices.dim(0);
    ASSIGN_OR_RETURN(expected, Shape::Make(dims));
  } else {
    expected.set_dim(0, indices.dim(0));
  }
  if (gradient.shape() != expected) {
    return InvalidArgument("the gradient must be of shape ", expected.ToString(),
                           ", a row for each index, is ", gradient.shape().ToString());
  }
  return CheckIndices(indices, variable.dim(0), "indices");
}

}  // namespace penstock
