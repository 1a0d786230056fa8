// SPDX-License-Identifier: Apache-2.0
//
// Rows of a variable updated by index: variable[indices[k]] op= updates[k], or a scalar for every
// row. Repeated indices are applied in order.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/array/gather_rows.h"
#include "kernels/math/types.h"
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

template <class Fn, class T>
class ScatterKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& indices = ctx.input(1);
    const Tensor& updates = ctx.input(2);
    RETURN_IF_ERROR(CheckDivisors<Fn, T>(updates));
    return UpdateVariableInput(ctx, kDTypeOf<T>, [&](Tensor& variable) -> Status {
      ASSIGN_OR_RETURN(const Rows rows, Rows::Of(variable.shape(), "the variable"));
      RETURN_IF_ERROR(CheckUpdates(variable.shape(), indices.shape(), updates.shape()));
      RETURN_IF_ERROR(CheckIndices(indices, rows.count, "indices"));
      VisitIndices(indices, [&](auto span) {
        ScatterRows<Fn, T>(ctx.threads(), span, updates, rows.length, variable);
      });
      return OkStatus();
    });
  }
};
template <class T>
using ScatterAddKernel = ScatterKernel<AddTo, T>;
template <class T>
using ScatterSubKernel = ScatterKernel<SubtractFrom, T>;
template <class T>
using ScatterMulKernel = ScatterKernel<MultiplyBy, T>;
template <class T>
using ScatterDivKernel = ScatterKernel<DivideBy, T>;
template <class T>
using ScatterMinKernel = ScatterKernel<LowerTo, T>;
template <class T>
using ScatterMaxKernel = ScatterKernel<RaiseTo, T>;
template <class T>
using ScatterUpdateKernel = ScatterKernel<ReplaceBy, T>;

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

#define SCATTER_REF(Verb, locking, text, allowed, ...)                                            \
  OP(Scatter##Verb, {                                                                             \
                        .doc = text,                                                              \
                        .inputs = {{"ref", Ref("T")}, {"indices", "Tindices"}, {"updates", "T"}}, \
                        .outputs = {{"output_ref", Ref("T")}},                                    \
                        .types = {{"T", allowed}, {"Tindices", kIndex}},                          \
                        .attrs = {{"use_locking", locking}},                                      \
                        .shape = ScatterShape<VariableForm::kRef>,                                \
                        .gradient = NoGradient,                                                   \
                    });                                                                           \
  KERNEL(Scatter##Verb, Scatter##Verb##Kernel, __VA_ARGS__)
#define SCATTER_RESOURCE(Verb, text, allowed, ...)                                            \
  OP(ResourceScatter##Verb,                                                                   \
     {                                                                                        \
         .doc = text,                                                                         \
         .inputs = {{"resource", "resource"}, {"indices", "Tindices"}, {"updates", "dtype"}}, \
         .types = {{"dtype", allowed}, {"Tindices", kIndex}},                                 \
         .shape = ScatterShape<VariableForm::kResource>,                                      \
         .gradient = NoGradient,                                                              \
         .stateful = true,                                                                    \
     });                                                                                      \
  KERNEL_BY("dtype", ResourceScatter##Verb, Scatter##Verb##Kernel, __VA_ARGS__)
#define SCATTER(Verb, locking, text, allowed, ...)        \
  SCATTER_REF(Verb, locking, text, allowed, __VA_ARGS__); \
  SCATTER_RESOURCE(Verb, text, allowed, __VA_ARGS__)

SCATTER(Add, false, "variable[indices] += updates", kNumber, NUMBER_TYPES);
SCATTER(Sub, false, "variable[indices] -= updates", kNumber, NUMBER_TYPES);
SCATTER(Mul, false, "variable[indices] *= updates", kNumber, NUMBER_TYPES);
SCATTER(Div, false, "variable[indices] /= updates", kNumber, NUMBER_TYPES);
SCATTER(Min, false, "variable[indices] = min(variable[indices], updates)", kReal, REAL_TYPES);
SCATTER(Max, false, "variable[indices] = max(variable[indices], updates)", kReal, REAL_TYPES);
SCATTER(Update, true, "variable[indices] = updates", kAllTypes, NUMBER_TYPES, bool, std::string,
        qint8, quint8, qint32, qint16, quint16);

}  // namespace
}  // namespace penstock
