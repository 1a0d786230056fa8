// SPDX-License-Identifier: Apache-2.0
//
// Ops that update rows of a variable by index: variable[indices[k]] op= updates[k], or a scalar for
// every row. Repeated indices are applied in order.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/tensor/type_lists.h"
#include "kernels/array/gather_rows.h"
#include "kernels/state/scatter_rows.h"
#include "kernels/state/variable_kernel.h"

namespace penstock {
namespace {

// InvalidArgument unless `updates` is a scalar or one row per index.
Status CheckUpdates(const Shape& variable, const Shape& indices, const Shape& updates) {
  if (updates.rank() == 0) return OkStatus();
  const auto rows = variable.dims().subspan(1);
  const auto head = updates.dims().subspan(0, std::min(updates.rank(), indices.rank()));
  if (head == indices.dims() && updates.dims().subspan(head.size()) == rows) return OkStatus();
  return InvalidArgument(
      "updates must be a scalar or of shape indices.shape + variable.shape[1:]; ", "got updates ",
      updates.ToString(), ", indices ", indices.ToString(), ", variable ", variable.ToString());
}

class ScatterKernel : public Kernel {
 public:
  explicit ScatterKernel(const RowScatter& scatter) : scatter_(scatter) {}

  Status Compute(KernelContext& ctx) override {
    const Tensor& indices = ctx.input(1);
    const Tensor& updates = ctx.input(2);
    if (scatter_.check != nullptr) RETURN_IF_ERROR(scatter_.check(updates));
    Rows rows;
    const auto changed = [&] { return Slices::Rows(indices, rows.length); };
    const auto update = [&](Tensor& variable) -> Status {
      ASSIGN_OR_RETURN(rows, Rows::Of(variable.shape(), "the variable"));
      RETURN_IF_ERROR(CheckUpdates(variable.shape(), indices.shape(), updates.shape()));
      RETURN_IF_ERROR(CheckIndices(indices, rows.count, "indices"));
      VisitIndices(indices, [&](auto span) {
        ScatterRows(ctx.threads(), scatter_, span, updates, rows.length, variable);
      });
      return OkStatus();
    };
    return UpdateVariableInput(ctx, updates.dtype(), update, changed);
  }

 private:
  const RowScatter scatter_;
};
template <class T>
using ScatterAddKernel = ScatterKernelBy<ScatterKernel, AddTo, T>;
template <class T>
using ScatterSubKernel = ScatterKernelBy<ScatterKernel, SubtractFrom, T>;
template <class T>
using ScatterMulKernel = ScatterKernelBy<ScatterKernel, MultiplyBy, T>;
template <class T>
using ScatterDivKernel = ScatterKernelBy<ScatterKernel, DivideBy, T>;
template <class T>
using ScatterMinKernel = ScatterKernelBy<ScatterKernel, AssignMin, T>;
template <class T>
using ScatterMaxKernel = ScatterKernelBy<ScatterKernel, AssignMax, T>;
using ScatterUpdateKernel = ReplaceKernelOf<ScatterKernel>;

template <VariableForm kForm>
Status ScatterShape(ShapeScope& s) {
  const PartialShape variable = VariableShape(s, 0, kForm);
  if (variable.rank() == 0) {
    return InvalidArgument("the variable must be at least 1-D, is a scalar");
  }
  const PartialShape& indices = s.input(1);
  const PartialShape& updates = s.input(2);
  if (variable.known_rank() && indices.known_rank() && updates.rank() != 0) {
    Dims expected(indices.dims().begin(), indices.dims().end());
    expected.insert(expected.end(), variable.dims().begin() + 1, variable.dims().end());
    RETURN_IF_ERROR(Annotate(updates.Merge(PartialShape(expected)).status(), "updates"));
  }
  SetVariableOutput(s, kForm, variable);
  return OkStatus();
}

// Defines both forms of an op, with ref edges and with resource handles.
#define SCATTER_OPS(Verb, locking, text, allowed)                                            \
  OP(Scatter##Verb) {                                                                        \
    return {                                                                                 \
        .doc = text,                                                                         \
        .inputs = {{"ref", Ref("T")}, {"indices", "Tindices"}, {"updates", "T"}},            \
        .outputs = {{"output_ref", Ref("T")}},                                               \
        .types = {{"T", allowed}, {"Tindices", kIndex}},                                     \
        .attrs = {{"use_locking", locking}},                                                 \
        .shape = ScatterShape<VariableForm::kRef>,                                           \
        .gradient = NoGradient,                                                              \
        .examples = {{.inputs = {{{{3, 2}}}, {{{2}, {2, 0}}}, {{{2, 2}}}}}},                 \
    };                                                                                       \
  }                                                                                          \
  OP(ResourceScatter##Verb) {                                                                \
    return {                                                                                 \
        .doc = text,                                                                         \
        .inputs = {{"resource", "resource"}, {"indices", "Tindices"}, {"updates", "dtype"}}, \
        .types = {{"dtype", allowed}, {"Tindices", kIndex}},                                 \
        .shape = ScatterShape<VariableForm::kResource>,                                      \
        .gradient = NoGradient,                                                              \
        .examples = {{.inputs = {{{{3, 2}}}, {{{2}, {2, 0}}}, {{{2, 2}}}}}},                 \
        .stateful = true,                                                                    \
    };                                                                                       \
  }
#define SCATTER(Verb, text, allowed, ...)                    \
  SCATTER_OPS(Verb, false, text, allowed);                   \
  KERNEL(Scatter##Verb, Scatter##Verb##Kernel, __VA_ARGS__); \
  KERNEL_BY("dtype", ResourceScatter##Verb, Scatter##Verb##Kernel, __VA_ARGS__)

SCATTER(Add, "variable[indices] += updates", kNumber, NUMBER_TYPES);
SCATTER(Sub, "variable[indices] -= updates", kNumber, NUMBER_TYPES);
SCATTER(Mul, "variable[indices] *= updates", kNumber, NUMBER_TYPES);
SCATTER(Div, "variable[indices] /= updates", kNumber, NUMBER_TYPES);
SCATTER(Min, "variable[indices] = min(variable[indices], updates)", kReal, REAL_TYPES);
SCATTER(Max, "variable[indices] = max(variable[indices], updates)", kReal, REAL_TYPES);
SCATTER_OPS(Update, true, "variable[indices] = updates", kAllTypes);
KERNEL_ANY_TYPE(ScatterUpdate, ScatterUpdateKernel);
KERNEL_ANY_TYPE(ResourceScatterUpdate, ScatterUpdateKernel);

}  // namespace
}  // namespace penstock
