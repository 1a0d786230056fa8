// SPDX-License-Identifier: Apache-2.0
//
// The engine of the training ops. An update rule is a small class that changes one element. The
// macros below make four ops from a rule: ApplyX and ResourceApplyX (dense gradients), SparseApplyX
// and ResourceSparseApplyX (rows of gradients), for every element type.
//
//   template <class C>  // what to compute in: T itself, float for half and bfloat16
//   struct GradientDescentRule {
//     static RuleSignature Signature() { return {.before = {"alpha"}, .gradient = "delta"}; }
//     static constexpr int kSlots = 0;
//     GradientDescentRule(const C* h, bool flag) : alpha(h[0]) {}  // h: hyperparameters, in order
//     void operator()(C& var, C grad) const { var -= alpha * grad; }
//     C alpha;
//   };
//   DENSE_UPDATE(GradientDescent, GradientDescentRule, "doc", kNumber, float, double);
//
// A rule may have `static Status Check(const C* hyperparameters, bool flag)`, which all ops call,
// or CheckSparse, which only sparse updates call. Everything is checked before anything is written;
// the variable and its slots change together, under their locks. Rows of a sparse update are
// applied in order, so that repeated indices add up.
#pragma once

#include <array>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/tensor/type_lists.h"
#include "kernels/state/row_updates.h"
#include "kernels/state/variable_kernel.h"
#include "kernels/training/update_rules.h"

namespace penstock {

enum class GradientForm { kDense, kSparse };
struct UpdateForm {
  VariableForm variable;
  GradientForm gradient;
};
inline constexpr UpdateForm kApply{VariableForm::kRef, GradientForm::kDense};
inline constexpr UpdateForm kResourceApply{VariableForm::kResource, GradientForm::kDense};
inline constexpr UpdateForm kSparseApply{VariableForm::kRef, GradientForm::kSparse};
inline constexpr UpdateForm kResourceSparseApply{VariableForm::kResource, GradientForm::kSparse};

// Returns the definition of a training op; `name` is the name of the rule, such as "Adam".
OpDef UpdateOpDef(const char* name, const char* doc, const RuleSignature& rule, UpdateForm form,
                  DTypes types);

// The indices of an update's inputs.
struct UpdateInputs {
  UpdateInputs(const RuleSignature& rule, GradientForm form);
  int gradient = 0;
  int indices = 0;  // sparse only
  std::vector<int> hyperparameters;
};

// Checks the shapes of a sparse update. InvalidArgument if the rows do not fit the variable.
Status CheckSparse(const Shape& variable, const Tensor& gradient, const Tensor& indices);
// InvalidArgument unless every slot has the shape of the variable, the first of `state`.
Status CheckSameShape(const RuleSignature& rule, absl::Span<Tensor* const> state);
// Returns the rows that a sparse update changes, in the variable and in each slot. REQUIRES:
// CheckSparse has succeeded.
Slices ChangedRows(const Tensor& variable, const Tensor& indices);
// InvalidArgument unless the gradient of a dense update has the variable's shape.
Status CheckDense(const RuleSignature& rule, const Shape& variable, const Tensor& gradient);
// Converts input i, of type T or int64, to C. InvalidArgument unless it is a scalar; errors call it
// `name`.
template <class T, class C>
Status ReadHyperparameter(const KernelContext& ctx, int i, const char* name, C* value) {
  const Tensor& input = ctx.input(i);
  if (input.rank() != 0) {
    return InvalidArgument(name, " is not a scalar: ", input.shape().ToString());
  }
  if (input.dtype() == DType::kInt64) {
    *value = static_cast<C>(input.scalar<int64_t>());
  } else {
    *value = static_cast<C>(input.scalar<T>());
  }
  return OkStatus();
}

template <class T>
using ComputeType =
    std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, float, T>;

template <template <class> class RuleOf, class T, GradientForm kForm>
class UpdateKernel : public Kernel {
  using C = ComputeType<T>;
  using Rule = RuleOf<C>;
  static constexpr int kState = Rule::kSlots + 1;
  static constexpr int kMaxHyperparameters = 8;
  // The time to read and write the state and read the gradient at 8 GB/s, and about a nanosecond
  // for the arithmetic.
  static constexpr double kElementNanos = 1 + (2 * kState + 1) * sizeof(T) / 8.0;

 public:
  Status Init(const KernelInit& node) override {
    if (signature_.flag == nullptr) return OkStatus();
    return node.Attr(signature_.flag, &flag_);
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Rule rule, MakeRule(ctx));
    std::array<std::shared_ptr<Variable>, kState> variables;
    std::array<Variable*, kState> pointers;
    for (int i = 0; i < kState; ++i) {
      ASSIGN_OR_RETURN(variables[i], VariableInput(ctx, i, kDTypeOf<T>));
      pointers[i] = variables[i].get();
    }
    if constexpr (kForm == GradientForm::kDense) {
      RETURN_IF_ERROR(UpdateDense(ctx, rule, pointers));
    } else {
      RETURN_IF_ERROR(UpdateSparse(ctx, rule, pointers));
    }
    if (ctx.num_outputs() > 0) ctx.SetOutput(0, ctx.input(0));
    return OkStatus();
  }

 private:
  using Slots = std::make_index_sequence<Rule::kSlots>;

  StatusOr<Rule> MakeRule(const KernelContext& ctx) const {
    C values[kMaxHyperparameters];
    CHECK(inputs_.hyperparameters.size() <= kMaxHyperparameters);
    for (size_t k = 0; k < inputs_.hyperparameters.size(); ++k) {
      const char* name = k < signature_.before.size()
                             ? signature_.before[k]
                             : signature_.after[k - signature_.before.size()];
      RETURN_IF_ERROR(ReadHyperparameter<T>(ctx, inputs_.hyperparameters[k], name, &values[k]));
    }
    if constexpr (requires { Rule::Check(values, flag_); }) {
      RETURN_IF_ERROR(Rule::Check(values, flag_));
    }
    constexpr bool kSparse = kForm == GradientForm::kSparse;
    if constexpr (kSparse && requires { Rule::CheckSparse(values, flag_); }) {
      RETURN_IF_ERROR(Rule::CheckSparse(values, flag_));
    }
    return Rule(values, flag_);
  }

  Status UpdateDense(KernelContext& ctx, const Rule& rule,
                     const std::array<Variable*, kState>& variables) const {
    const Tensor& gradient = ctx.input(inputs_.gradient);
    const auto update = [&](absl::Span<const Variable::Renewal> renewals) -> Status {
      std::array<Tensor*, kState> state;
      for (int i = 0; i < kState; ++i) state[i] = renewals[i].value;
      RETURN_IF_ERROR(CheckSameShape(signature_, state));
      RETURN_IF_ERROR(CheckDense(signature_, state[0]->shape(), gradient));
      const std::array<T*, kState> data = DataOf(state);
      const T* const grad = gradient.data<T>();
      ctx.threads().ParallelFor(
          gradient.num_elements(), kElementNanos, [&](int64_t first, int64_t last) {
            ForEachRenewed<T>(renewals, first, last, [&](int64_t begin, int64_t end) {
              ApplyRule<Rule, C, T>(rule, At(data, begin), grad + begin, end - begin, Slots());
            });
          });
      return OkStatus();
    };
    return Variable::UpdateAll(variables, ctx.origin(), update);
  }

  Status UpdateSparse(KernelContext& ctx, const Rule& rule,
                      const std::array<Variable*, kState>& variables) const {
    const Tensor* variable = nullptr;
    const auto update = [&](absl::Span<Tensor* const> state) -> Status {
      RETURN_IF_ERROR(CheckSameShape(signature_, state));
      variable = state[0];
      return ApplySparse(ctx, rule, variable->shape(), DataOf(state));
    };
    const auto changed = [&](size_t) { return ChangedRows(*variable, ctx.input(inputs_.indices)); };
    return Variable::Update(variables, ctx.origin(), update, changed);
  }

  Status ApplySparse(KernelContext& ctx, const Rule& rule, const Shape& shape,
                     const std::array<T*, kState>& state) const {
    const Tensor& gradient = ctx.input(inputs_.gradient);
    const Tensor& indices = ctx.input(inputs_.indices);
    RETURN_IF_ERROR(CheckSparse(shape, gradient, indices));
    ASSIGN_OR_RETURN(const Rows rows, Rows::Of(shape, "var"));
    const T* const grad = gradient.data<T>();
    const int64_t length = rows.length;
    VisitIndices(indices, [&](auto span) {
      ForEachRowUpdate(
          ctx.threads(), span, 5 + length * kElementNanos,
          [&](int64_t k, int64_t row) {
            ApplyRule<Rule, C, T>(rule, At(state, row * length), grad + k * length, length,
                                  Slots());
          },
          [&](int64_t row) {
            for (T* data : state) PrefetchRow(data + row * length, length * sizeof(T));
          });
    });
    return OkStatus();
  }

  static std::array<T*, kState> DataOf(absl::Span<Tensor* const> state) {
    std::array<T*, kState> data;
    for (int i = 0; i < kState; ++i) data[i] = state[i]->mutable_data<T>();
    return data;
  }
  static std::array<T*, kState> At(std::array<T*, kState> state, int64_t offset) {
    for (T*& data : state) data += offset;
    return state;
  }

  const RuleSignature signature_ = Rule::Signature();
  const UpdateInputs inputs_{signature_, kForm};
  bool flag_ = false;
};

#define PENSTOCK_UPDATE_OP(Op, Name, Rule, doc, form, types, ...)                   \
  OP(Op) { return UpdateOpDef(#Name, doc, Rule<float>::Signature(), form, types); } \
  template <class T>                                                                \
  using Op##Kernel = UpdateKernel<Rule, T, form.gradient>;                          \
  KERNEL(Op, Op##Kernel, __VA_ARGS__)
// Defines ApplyName and ResourceApplyName.
#define DENSE_UPDATE(Name, Rule, doc, types, ...)                               \
  PENSTOCK_UPDATE_OP(Apply##Name, Name, Rule, doc, kApply, types, __VA_ARGS__); \
  PENSTOCK_UPDATE_OP(ResourceApply##Name, Name, Rule, doc, kResourceApply, types, __VA_ARGS__)
// Defines SparseApplyName and ResourceSparseApplyName.
#define SPARSE_UPDATE(Name, Rule, doc, types, ...)                                            \
  PENSTOCK_UPDATE_OP(SparseApply##Name, Name, Rule, doc, kSparseApply, types, __VA_ARGS__);   \
  PENSTOCK_UPDATE_OP(ResourceSparseApply##Name, Name, Rule, doc, kResourceSparseApply, types, \
                     __VA_ARGS__)
// Defines all four ops.
#define UPDATE(Name, Rule, doc, types, ...)          \
  DENSE_UPDATE(Name, Rule, doc, types, __VA_ARGS__); \
  SPARSE_UPDATE(Name, Rule, doc, types, __VA_ARGS__)

}  // namespace penstock
