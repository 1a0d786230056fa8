// SPDX-License-Identifier: Apache-2.0
//
// The ops that update rows of a DynamicTable, one for each optimizer: DynamicTableApplyAdagrad and
// so on. They use the update rules of kernels/training.
#include <array>
#include <cmath>
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/data/handle_kernel.h"
#include "kernels/dynamic_table/dynamic_table.h"
#include "kernels/dynamic_table/table_op.h"
#include "kernels/training/update_rules.h"

namespace penstock {
namespace {

// A method is an optimizer. RuleFor returns the rule for the n-th update of a row. `h`: the
// hyperparameters, in the order of kNames.
struct GradientDescentMethod {
  static constexpr std::array kNames = {"lr"};
  using Rule = GradientDescentRule<float>;
  static Status Check(const float* h) { return OkStatus(); }
  static Rule RuleFor(const float* h, int64_t) { return Rule(h, false); }
};

struct AdagradMethod {
  static constexpr std::array kNames = {"lr"};
  using Rule = AdagradRule<float>;
  static Status Check(const float* h) { return OkStatus(); }
  static Rule RuleFor(const float* h, int64_t) { return Rule(h, true); }
};

struct AdamMethod {
  static constexpr std::array kNames = {"lr", "beta1", "beta2", "epsilon"};
  using Rule = AdamRule<float>;
  static Status Check(const float* h) {
    for (const int i : {1, 2}) {
      if (h[i] >= 0 && h[i] < 1) continue;
      return InvalidArgument(kNames[i], " must be at least 0 and below 1, is ", h[i]);
    }
    return OkStatus();
  }
  // Corrects the bias of the moments by the number of updates of this row, so that a row that is
  // created late is trained like a row that was created first.
  static Rule RuleFor(const float* h, int64_t updates) {
    const auto power = static_cast<float>(updates);
    const float values[] = {std::pow(h[1], power), std::pow(h[2], power), h[0], h[1], h[2], h[3]};
    return Rule(values, false);
  }
};

struct FtrlMethod {
  static constexpr std::array kNames = {"lr", "l1", "l2", "lr_power"};
  using Rule = FtrlRule<float>;
  static Status Check(const float* h) { return Rule::CheckSparse(h, false); }
  static Rule RuleFor(const float* h, int64_t) { return Rule(h, false); }
};

// Inputs: table, ids, grad, step, and the method's hyperparameters.
constexpr int kIds = 1, kGrad = 2, kStep = 3, kFirst = 4;

Status CheckInputs(const KernelContext& ctx, const DynamicTable& table, int64_t slots) {
  const int64_t found = std::ssize(table.spec().slots);
  if (found != slots) {
    return InvalidArgument("table '", table.name(), "' has ", found, " slots, this method needs ",
                           slots);
  }
  const Tensor &ids = ctx.input(kIds), &grad = ctx.input(kGrad);
  const Shape wanted({ids.rank() == 1 ? ids.dim(0) : 0, table.spec().width});
  if (ids.rank() != 1 || grad.shape() != wanted) {
    return InvalidArgument("grad must be a row of table '", table.name(), "', of width ",
                           table.spec().width, ", for each of ids; is ", grad.shape().ToString(),
                           " for ids ", ids.shape().ToString());
  }
  for (int i = kStep; i < ctx.num_inputs(); ++i) {
    if (ctx.input(i).rank() == 0) continue;
    return InvalidArgument(i == kStep ? "step" : "a hyperparameter",
                           " is not a scalar: ", ctx.input(i).shape().ToString());
  }
  return OkStatus();
}

template <class Method>
class ApplyKernel final : public Kernel {
  using Rule = typename Method::Rule;
  static constexpr int kState = Rule::kSlots + 1;
  static constexpr double kElementNanos = 0.3 * kState;

 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto table, ResourceInput<DynamicTable>(ctx, 0));
    RETURN_IF_ERROR(CheckInputs(ctx, *table, Rule::kSlots));
    std::array<float, Method::kNames.size()> h;
    for (size_t i = 0; i < h.size(); ++i) {
      h[i] = ctx.input(kFirst + static_cast<int>(i)).scalar<float>();
    }
    RETURN_IF_ERROR(Method::Check(h.data()));
    const float* const grad = ctx.input(kGrad).data<float>();
    const int64_t width = table->spec().width;
    const auto update = [&](int32_t position, float* values, int64_t updates) {
      std::array<float*, kState> state;
      for (int i = 0; i < kState; ++i) state[i] = values + i * width;
      ApplyRule<Rule, float, float>(Method::RuleFor(h.data(), updates), state,
                                    grad + position * width, width,
                                    std::make_index_sequence<Rule::kSlots>());
    };
    return table->Push(ctx.input(kIds), ctx.input(kStep).scalar<int64_t>(),
                       kElementNanos * static_cast<double>(width), update, TableCaller(ctx));
  }
};

template <class Method>
OpDef ApplyOp(const char* rule, const char* doc) {
  OpDef op{
      .doc = doc,
      .inputs = {{"table", "resource"},
                 {"ids", "int64"},
                 {.name = "grad", .type = "float", .is_gradient = true},
                 {"step", "int64"}},
      .shape = NoOutputs,
      .gradient = NoGradient,
      .stateful = true,
      .update_rule = rule,
      .untestable_alone = "works on a dynamic table: kernels/dynamic_table has its tests",
  };
  for (const char* name : Method::kNames) op.inputs.push_back({name, "float"});
  return op;
}

}  // namespace

#define TABLE_METHOD(Name, doc)                                                            \
  OP(DynamicTableApply##Name) {                                                            \
    return ApplyOp<Name##Method>(                                                          \
        #Name, doc                                                                         \
        ". Makes the rows of ids that have none. Repeated ids are updated one after the "  \
        "other. Each of these rows stores `step`, the training step of its last update."); \
  }                                                                                        \
  KERNEL_ANY_TYPE(DynamicTableApply##Name, ApplyKernel<Name##Method>)

TABLE_METHOD(GradientDescent, "row -= lr * grad");
TABLE_METHOD(Adagrad,
             "Adagrad on rows, with one slot: accum += grad^2; "
             "row -= lr * grad / sqrt(accum)");
TABLE_METHOD(Adam,
             "Adam on rows, with the slots m and v; t is the number of updates of the row: m = "
             "beta1 * m + (1 - beta1) * grad; v = beta2 * v + (1 - beta2) * grad^2; row -= lr "
             "* sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon)");
TABLE_METHOD(Ftrl,
             "Ftrl on rows, with the slots accum and linear, by the formula of "
             "ResourceSparseApplyFtrl");

}  // namespace penstock
