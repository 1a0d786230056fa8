// SPDX-License-Identifier: Apache-2.0
//
// Einsum: sums products of tensors over the dimensions that an equation of labels leaves out.
#include "absl/algorithm/container.h"
#include "core/op/flops.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/tensor/type_lists.h"
#include "kernels/array/arguments.h"
#include "kernels/linalg/einsum_kernel.h"
#include "kernels/math/matmul_cpu.h"
#include "kernels/math/sum_reducer.h"

namespace penstock {
namespace {

#define EINSUM_TYPES FLOATING_TYPES, int32_t, int64_t, COMPLEX_TYPES

template <class T>
class EinsumOnCpu final : public EinsumKernel {
 public:
  EinsumOnCpu() : EinsumKernel(kSum, MultiplyOnCpu<T>) {}

 private:
  static constexpr ReductionLoop kSum = ReductionLoopOf<SumReducer, T>();
};

Status EinsumShape(ShapeScope& s) {
  const auto& text = s.attr<std::string>("equation");
  ASSIGN_OR_RETURN(const EinsumEquation equation, EinsumEquation::Parse(text, s.num_inputs()));
  std::vector<PartialShape> shapes;
  for (int i = 0; i < s.num_inputs(); ++i) {
    shapes.push_back(s.input(i));
    if (!s.input(i).known_rank()) return OkStatus();
  }
  ASSIGN_OR_RETURN(const EinsumLabels all, EinsumLabels::Of(equation, shapes));
  return SetOutput(s, 0, all.SizesOf(all.output));
}

Output CallEinsum(const Outputs& inputs, const std::string& equation) {
  return Call("Einsum", {inputs}, {{"equation", equation}});
}

Output Int(Output like, int32_t value) {
  return Constant(*like.sink, Tensor::Scalar<int32_t>(value));
}

// Returns the axis of `label` in a tensor with these subscripts, counted from the end if it is
// after the ellipsis.
Output AxisOf(const std::string& subscripts, char label, Output x) {
  const auto at = static_cast<int32_t>(subscripts.find(label));
  const size_t dots = subscripts.find(kEllipsis);
  if (dots == std::string::npos || at < static_cast<int32_t>(dots)) return Int(x, at);
  return RankOf(x) - static_cast<double>(static_cast<int32_t>(subscripts.size()) - at);
}

// Returns the sizes of the dimensions of x for which the ellipsis of `subscripts` stands.
Output EllipsisSizes(const std::string& subscripts, Output x) {
  const auto before = static_cast<int32_t>(subscripts.find(kEllipsis));
  const auto named = static_cast<int32_t>(subscripts.size() - kEllipsisSize);
  const Output begin = Pack(Outputs{Int(x, before)});
  return Call("Slice", {ShapeOf(x), begin, Pack(Outputs{RankOf(x) - static_cast<double>(named)})});
}

// The gradient of input i: an einsum of dy and, if there are two inputs, of the other input.
class InputGradient {
 public:
  InputGradient(const GradientScope& g, const EinsumEquation& equation, int i)
      : g_(g), equation_(equation), i_(i), own_(equation.inputs[i]) {
    const std::string others = equation.output + (g.num_inputs() == 2 ? Other() : "");
    for (const char label : own_) {
      if (label == '.' || (kept_labels_ + summed_labels_).find(label) != std::string::npos)
        continue;
      (others.find(label) != std::string::npos ? kept_labels_ : summed_labels_) += label;
    }
  }

  Output Build() const {
    const bool broadcasts = Broadcasts();
    if (summed_labels_.empty() && !broadcasts) return ContractGradient(own_);
    const std::string all = kEllipsis + kept_labels_, now = HasEllipsis(own_) ? all : kept_labels_;
    Output dx = ContractGradient(broadcasts ? all : now);
    if (broadcasts) dx = SumOverBroadcast(dx);
    if (summed_labels_.empty()) return now == own_ ? dx : CallEinsum({dx}, StrCat(now, "->", own_));
    return CallEinsum({dx, Ones()}, StrCat(now, ",", summed_labels_, "->", own_));
  }

 private:
  const std::string& Other() const { return equation_.inputs[1 - i_]; }

  Output ContractGradient(const std::string& subscripts) const {
    if (g_.num_inputs() == 1) {
      return CallEinsum({g_.dy()}, StrCat(equation_.output, "->", subscripts));
    }
    return CallEinsum({g_.dy(), Conj(g_.x(1 - i_))},
                      StrCat(equation_.output, ",", Other(), "->", subscripts));
  }

  // Returns ones in the shape of the dimensions over which input i was summed: along them its
  // gradient is constant.
  Output Ones() const {
    Outputs axes;
    for (const char label : summed_labels_) axes.push_back(AxisOf(own_, label, g_.x(i_)));
    const Output dims = Gather(ShapeOf(g_.x(i_)), Pack(axes), Int(g_.x(i_), 0));
    return Fill(dims, Cast(g_.Const(1.0), g_.dtype()));
  }

  // Returns true unless the ellipsis is known to stand for the same dimensions in x as in the
  // output.
  bool Broadcasts() const {
    if (g_.num_inputs() == 1 || !HasEllipsis(equation_.output)) return false;
    if (!HasEllipsis(Other())) return false;
    if (!HasEllipsis(own_)) return true;
    const PartialShape own = EllipsisOf(i_), other = EllipsisOf(1 - i_);
    return !own.fully_known() || !(own == other);
  }
  PartialShape EllipsisOf(int i) const {
    const std::string& subscripts = equation_.inputs[i];
    const PartialShape shape = g_.x(i).shape();
    const int before = static_cast<int>(subscripts.find(kEllipsis));
    const int after = static_cast<int>(subscripts.size() - kEllipsisSize) - before;
    if (shape.rank() < before + after) return PartialShape();
    return SubShape(shape, before, shape.rank() - after);
  }

  // Sums `dx`, whose ellipsis dimensions come first, over the dimensions along which x was
  // broadcast.
  Output SumOverBroadcast(Output dx) const {
    const Output x = g_.x(i_), zero = Int(x, 0);
    Outputs sizes = {g_.Const(Tensor::Vector<int32_t>({}))};
    if (HasEllipsis(own_)) sizes.push_back(EllipsisSizes(own_, x));
    for (const char label : kept_labels_) {
      sizes.push_back(Gather(ShapeOf(x), Pack(Outputs{AxisOf(own_, label, x)}), zero));
    }
    const Output shape = sizes.size() == 1 ? sizes[0] : ConcatV2(sizes, zero);
    const Output axes = Call("BroadcastGradientArgs", {shape, ShapeOf(dx)});
    return Reshape(Sum(dx, axes), shape);
  }

  const GradientScope& g_;
  const EinsumEquation& equation_;
  const int i_;
  const std::string& own_;
  // The labels of input i: kept_labels_ are also in dy or in the other input; summed_labels_ are
  // all other labels.
  std::string kept_labels_, summed_labels_;
};

std::vector<Gradient> EinsumGradient(const GradientScope& g) {
  const auto equation = EinsumEquation::Parse(g.attr<std::string>("equation"), g.num_inputs());
  if (!equation.ok()) {
    g.sink().Fail(equation.status());
    return std::vector<Gradient>(g.num_inputs());
  }
  std::vector<Gradient> dx;
  for (int i = 0; i < g.num_inputs(); ++i) {
    dx.push_back(InputGradient(g, *equation, i).Build());
  }
  return dx;
}

bool Has(const Labels& labels, int label) { return absl::c_linear_search(labels, label); }

// Returns the operations of the kernel. It first sums each input over the labels that only this
// input has. That leaves one product: two operations for each combination of the remaining labels.
double EinsumFlops(const FlopsScope& s) {
  const int num_inputs = static_cast<int>(s.inputs.size());
  const auto given = s.attrs.find("equation");
  const auto* const text = given == s.attrs.end() ? nullptr : given->second.get<std::string>();
  const auto equation =
      EinsumEquation::Parse(text == nullptr ? "" : string_view(*text), num_inputs);
  const bool ranks = absl::c_all_of(s.inputs, [](const auto& in) { return in.known_rank(); });
  if (!equation.ok() || !ranks) return 2 * Elements(s.outputs[0]) * kUnknownDim;
  const auto labels = EinsumLabels::Of(*equation, {s.inputs.begin(), s.inputs.end()});
  if (!labels.ok()) return 2 * Elements(s.outputs[0]) * kUnknownDim;
  double sums = 0, product = num_inputs == 2 ? 2 : 0;
  for (const auto& [label, size] : labels->sizes) {
    const bool everywhere =
        absl::c_all_of(labels->inputs, [&, l = label](const Labels& in) { return Has(in, l); });
    if (everywhere || Has(labels->output, label)) product *= size < 0 ? kUnknownDim : size;
  }
  for (int i = 0; i < num_inputs; ++i) {
    const auto summed = [&](int label) {
      const bool shared = num_inputs == 2 && Has(labels->inputs[1 - i], label);
      return !shared && !Has(labels->output, label);
    };
    if (absl::c_any_of(labels->inputs[i], summed)) sums += Elements(s.inputs[i]);
  }
  return sums + product;
}

Example ExampleOf(const char* equation, std::vector<ExampleTensor> inputs) {
  const auto count = static_cast<int64_t>(inputs.size());
  return {.inputs = {std::move(inputs)}, .attrs = {{"equation", equation}, {"N", count}}};
}

OP(Einsum) {
  return {
      .doc =
          "Multiplies one or two tensors and sums over the dimensions whose labels are not "
          "in the output: the equation \"ij,jk->ik\" is a matrix product. A label repeated "
          "in one tensor selects its diagonal; \"...\" stands for dimensions that "
          "broadcast.",
      .inputs = {{"inputs", Repeat("N", "T")}},
      .outputs = {{"output", "T"}},
      .types = {{"T", TypesOf<EINSUM_TYPES>()}},
      .attrs = {{"equation", Strings{}}, {"N", Ints{.min = 1}}},
      .shape = EinsumShape,
      .gradient = EinsumGradient,
      .examples =
          {
              ExampleOf("ij,jk->ik", {{{2, 3}}, {{3, 2}}}),
              ExampleOf("bqhd,bkhd->bhqk", {{{1, 2, 2, 3}}, {{1, 3, 2, 3}}}),
              ExampleOf("a...bc,...cd->d...a", {{{2, 2, 1, 2, 3}}, {{3, 3, 2}}}),
              ExampleOf("iij...->j...i", {{{2, 2, 3, 2}}}),
              ExampleOf("i...jk->...", {{{2, 2, 3, 2}}}),
              ExampleOf("ii,jk->kii", {{{2, 2}}, {{3, 2}}}),
          },
      .flops = EinsumFlops,
  };
}
KERNEL(Einsum, EinsumOnCpu, EINSUM_TYPES);

}  // namespace
}  // namespace penstock
