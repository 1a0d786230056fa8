// SPDX-License-Identifier: Apache-2.0
//
// CTCLoss, CTCLossV2: the negative log probability of the labels, summed over all alignments with
// the logits, and its gradient (Graves, Fernandez, Gomez and Schmidhuber 2006). Use the
// forward-backward algorithm with logarithms in double precision.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/ctc/ctc_input.h"
#include "kernels/ctc/log_add.h"

namespace penstock {
namespace {

// The labels of one sequence. For an Aligner, blanks are inserted before, between and after the
// labels; an index into that sequence is a state of the alignment.
using LabelSequence = std::vector<int64_t>;

class Aligner {
 public:
  // `log_y`: [time, classes] log probabilities. `merge`: repeated labels without a blank between
  // them count as one.
  Aligner(const LabelSequence& labels, const std::vector<double>& log_y, int64_t time,
          int64_t classes, int64_t blank, bool merge)
      : l_(labels), log_y_(log_y), time_(time), classes_(classes), blank_(blank), merge_(merge) {}

  // Returns the log probability of the labels. Sets `occupancy` to [time, classes]: the log
  // probability of the alignments that have this class at this step.
  double Run(std::vector<double>* occupancy) const {
    const std::vector<double> alpha = Forward(), beta = Backward();
    const int64_t n = states();
    double total = kLogZero;
    for (int64_t u = 0; u < n; ++u) total = LogAdd(total, alpha[u] + beta[u]);
    occupancy->assign(time_ * classes_, kLogZero);
    for (int64_t t = 0; t < time_; ++t) {
      for (int64_t u = 0; u < n; ++u) {
        double& to = (*occupancy)[t * classes_ + l_[u]];
        to = LogAdd(to, alpha[t * n + u] + beta[t * n + u]);
      }
    }
    return total;
  }

 private:
  int64_t states() const { return static_cast<int64_t>(l_.size()); }
  double LogY(int64_t t, int64_t u) const { return log_y_[t * classes_ + l_[u]]; }
  // Return whether an alignment may stay in state u (MayStay), or go from state u - 2 to state u
  // (MaySkip).
  bool MayStay(int64_t u) const { return merge_ || l_[u] == blank_; }
  bool MaySkip(int64_t u) const {
    return u > 1 && l_[u] != blank_ && !(merge_ && l_[u] == l_[u - 2]);
  }

  // Returns alpha, [time, states]: alpha(t, u) is the log probability of the alignments of the
  // steps up to t that end in state u, including the probability of step t.
  std::vector<double> Forward() const {
    const int64_t n = states();
    std::vector<double> alpha(time_ * n, kLogZero);
    for (int64_t u = 0; u < std::min<int64_t>(n, 2); ++u) alpha[u] = LogY(0, u);
    for (int64_t t = 1; t < time_; ++t) {
      const double* before = alpha.data() + (t - 1) * n;
      for (int64_t u = 0; u < n; ++u) {
        double sum = MayStay(u) ? before[u] : kLogZero;
        if (u > 0) sum = LogAdd(sum, before[u - 1]);
        if (MaySkip(u)) sum = LogAdd(sum, before[u - 2]);
        alpha[t * n + u] = sum + LogY(t, u);
      }
    }
    return alpha;
  }
  // Returns beta, [time, states]: beta(t, u) is the log probability of the steps after t, from
  // state u to the end.
  std::vector<double> Backward() const {
    const int64_t n = states();
    std::vector<double> beta(time_ * n, kLogZero);
    for (int64_t u = std::max<int64_t>(n - 2, 0); u < n; ++u) beta[(time_ - 1) * n + u] = 0;
    for (int64_t t = time_ - 2; t >= 0; --t) {
      const double* after = beta.data() + (t + 1) * n;
      for (int64_t u = 0; u < n; ++u) {
        double sum = MayStay(u) ? after[u] + LogY(t + 1, u) : kLogZero;
        if (u + 1 < n) sum = LogAdd(sum, after[u + 1] + LogY(t + 1, u + 1));
        if (u + 2 < n && MaySkip(u + 2)) sum = LogAdd(sum, after[u + 2] + LogY(t + 1, u + 2));
        beta[t * n + u] = sum;
      }
    }
    return beta;
  }

  const LabelSequence& l_;
  const std::vector<double>& log_y_;
  const int64_t time_, classes_, blank_;
  const bool merge_;
};

class CtcLossBase : public Kernel {
 protected:
  Status Init(const KernelInit& node) override {
    first_is_blank_ = node.op.name == "CTCLossV2";
    RETURN_IF_ERROR(node.Attr("preprocess_collapse_repeated", &collapse_));
    RETURN_IF_ERROR(node.Attr("ctc_merge_repeated", &merge_));
    return node.Attr("ignore_longer_outputs_than_inputs", &ignore_longer_);
  }

  // Returns the labels of each sequence with blanks before, between and after them; an empty
  // sequence if it has too few steps and is ignored. InvalidArgument if labels are wrong or
  // missing, or if there are too few steps.
  StatusOr<std::vector<LabelSequence>> SequencesWithBlanks(const KernelContext& ctx,
                                                           const CtcInput& in) const {
    ASSIGN_OR_RETURN(const std::vector<LabelSequence> given, Labels(ctx, in.batch));
    std::vector<LabelSequence> sequences(in.batch);
    for (int64_t b = 0; b < in.batch; ++b) {
      if (given[b].empty()) return InvalidArgument("Labels length is zero in batch ", b);
      ASSIGN_OR_RETURN(const LabelSequence labels, NormalizedLabels(given[b], b, in.classes));
      if (static_cast<int64_t>(labels.size()) > in.lengths[b]) {
        if (ignore_longer_) continue;
        return InvalidArgument("Not enough time for target transition sequence (required: ",
                               labels.size(), ", available: ", in.lengths[b], ") in batch ", b,
                               "; ignore_longer_outputs_than_inputs would give it a loss of 0");
      }
      sequences[b].push_back(Blank(in.classes));
      for (int64_t label : labels) {
        sequences[b].push_back(label);
        sequences[b].push_back(Blank(in.classes));
      }
    }
    return sequences;
  }

  int64_t Blank(int64_t classes) const { return first_is_blank_ ? 0 : classes - 1; }
  bool merge_ = true;

 private:
  // Returns the rows of the sparse matrix of labels. InvalidArgument if its indices are out of
  // range or not in order.
  static StatusOr<std::vector<LabelSequence>> Labels(const KernelContext& ctx, int64_t batch) {
    const Tensor &indices = ctx.input(1), &values = ctx.input(2);
    if (indices.rank() != 2 || indices.dim(1) != 2 || values.rank() != 1 ||
        values.dim(0) != indices.dim(0)) {
      return InvalidArgument("labels must be n indices [n, 2] and n values, have shapes ",
                             indices.shape().ToString(), " and ", values.shape().ToString());
    }
    std::vector<LabelSequence> labels(batch);
    const int64_t* index = indices.data<int64_t>();
    for (int64_t i = 0; i < values.dim(0); ++i, index += 2) {
      if (index[0] < 0 || index[0] >= batch || index[1] < 0) {
        return InvalidArgument("label SparseTensor is not valid: indices[", i, "] = [", index[0],
                               ",", index[1], "] is out of bounds for a batch of ", batch);
      }
      if (i > 0 && (index[0] < index[-2] || (index[0] == index[-2] && index[1] <= index[-1]))) {
        return InvalidArgument("label SparseTensor is not valid: indices[", i, "] = [", index[0],
                               ",", index[1], "] is out of order");
      }
      labels[index[0]].push_back(values.data<int32_t>()[i]);
    }
    return labels;
  }

  // Returns the labels without trailing classes that mean "no label" and, if the attributes say so,
  // without repetitions. InvalidArgument if a label is negative, or follows "no label".
  StatusOr<LabelSequence> NormalizedLabels(const LabelSequence& given, int64_t b,
                                           int64_t classes) const {
    LabelSequence labels;
    bool ended = false;
    for (size_t i = 0; i < given.size(); ++i) {
      const int64_t label = given[i];
      if (label < 0) {
        return InvalidArgument("All labels must be nonnegative integers, batch: ", b,
                               " labels: ", absl::StrJoin(given, ","));
      }
      if (collapse_ && i > 0 && label == given[i - 1]) continue;
      const bool null = label == Blank(classes) || label >= classes;
      if (!null && ended) {
        return InvalidArgument("Saw a non-null label following a null label, batch: ", b,
                               " num_classes: ", classes, " labels: ", absl::StrJoin(given, ","));
      }
      ended |= null;
      if (!null) labels.push_back(label);
    }
    return labels;
  }

  bool first_is_blank_ = false, collapse_ = false, ignore_longer_ = false;
};

template <class T>
class CtcLossKernel final : public CtcLossBase {
  Status Compute(KernelContext& ctx) override {
    const Tensor& lengths = ctx.input(3);
    ASSIGN_OR_RETURN(const CtcInput in,
                     CtcInput::Of(ctx.input(0), lengths, StatusCode::kInvalidArgument));
    for (int32_t length : lengths.flat<int32_t>()) {
      if (length < 0) return InvalidArgument("sequence_length is ", length, ", must not be < 0");
    }
    ASSIGN_OR_RETURN(const std::vector<LabelSequence> sequences, SequencesWithBlanks(ctx, in));
    Tensor *loss, *gradient;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape({in.batch}), &loss));
    RETURN_IF_ERROR(ctx.Allocate(1, ctx.input(0).shape(), &gradient));
    const T* x = ctx.input(0).data<T>();
    T* d = gradient->mutable_data<T>();
    std::fill_n(loss->mutable_data<T>(), in.batch, T(0));
    std::fill_n(d, gradient->num_elements(), T(0));
    const double one_ns = 20.0 * static_cast<double>(in.time * in.classes);
    ctx.threads().ParallelFor(in.batch, one_ns, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        if (sequences[b].empty() || in.lengths[b] == 0) continue;
        loss->mutable_data<T>()[b] = One(in, sequences[b], b, x, d);
      }
    });
    return OkStatus();
  }

  T One(const CtcInput& in, const LabelSequence& labels, int64_t b, const T* x, T* d) const {
    const int64_t time = in.lengths[b];
    std::vector<double> log_y(time * in.classes), occupancy;
    for (int64_t t = 0; t < time; ++t) {
      const T* logits = x + in.at(t, b);
      const double max = *std::max_element(logits, logits + in.classes);
      double sum = 0;
      for (int64_t c = 0; c < in.classes; ++c) sum += std::exp(logits[c] - max);
      for (int64_t c = 0; c < in.classes; ++c) {
        log_y[t * in.classes + c] = logits[c] - max - std::log(sum);
      }
    }
    const double log_p =
        Aligner(labels, log_y, time, in.classes, Blank(in.classes), merge_).Run(&occupancy);
    // If no alignment yields the labels, the gradient is that of the softmax alone.
    for (int64_t t = 0; t < time; ++t) {
      for (int64_t c = 0; c < in.classes; ++c) {
        const int64_t i = t * in.classes + c;
        const double through = log_p == kLogZero ? 0 : std::exp(occupancy[i] - log_p);
        d[in.at(t, b) + c] = static_cast<T>(std::exp(log_y[i]) - through);
      }
    }
    return static_cast<T>(-log_p);
  }
};

Status LossShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape logits, s.WithRank(0, 3));
  ASSIGN_OR_RETURN(const PartialShape indices, s.WithRank(1, 2));
  ASSIGN_OR_RETURN(const PartialShape values, s.WithRank(2, 1));
  ASSIGN_OR_RETURN(const PartialShape lengths, s.WithRank(3, 1));
  if (indices.known_rank() && values.known_rank()) {
    RETURN_IF_ERROR(PartialShape({indices.dim(0)}).Merge(values).status());
  }
  const int64_t batch = logits.known_rank() ? logits.dim(1) : PartialShape::kUnknown;
  ASSIGN_OR_RETURN(const PartialShape loss, PartialShape({batch}).Merge(lengths));
  s.set_output(0, loss);
  s.set_output(1, logits);
  return OkStatus();
}

// Returns the gradient of the logits, which the op has computed already, as output 1. A second
// derivative is not available.
std::vector<Gradient> LossGradient(const GradientScope& g) {
  const Output gradient = Call("PreventGradient", {g.y(1)},
                               {{"message", "the gradient of CTCLoss has no gradient of its own"}});
  const Output loss_gradient = Reshape(g.dy(0), g.Const(Tensor::Vector<int32_t>({1, -1, 1})));
  return {gradient * loss_gradient, Gradient(), Gradient(), Gradient()};
}

OpDef LossDef(const char* doc, const char* type) {
  OpDef def{.doc = doc,
            .inputs = {{"inputs", type},
                       {"labels_indices", "int64"},
                       {"labels_values", "int32"},
                       {"sequence_length", "int32"}},
            .outputs = {{"loss", type}, {"gradient", type}},
            .attrs = {{"preprocess_collapse_repeated", false},
                      {"ctc_merge_repeated", true},
                      {"ignore_longer_outputs_than_inputs", false}},
            .shape = LossShape,
            .gradient = LossGradient,
            .examples = {{.inputs = {{{{4, 2, 3}}},
                                     {{{3, 2}, {0, 0, 0, 1, 1, 0}}},
                                     {{{3}, {1, 1, 1}}},
                                     {{{2}, {4, 3}}}},
                          .check_gradient = false}}};
  if (*type == 'T') def.types = {{"T", {DType::kFloat, DType::kDouble}, DType::kFloat}};
  return def;
}

}  // namespace

OP(CTCLoss) {
  return LossDef(
      "Returns, for each label sequence, the negative logarithm of its probability given the "
      "logits [time, batch, classes], and the gradient of this loss for the logits. The last class "
      "is the blank.",
      "T");
}
KERNEL(CTCLoss, CtcLossKernel, float, double);

OP(CTCLossV2) { return LossDef("The same as CTCLoss, with class 0 as the blank.", "float"); }
KERNEL_ANY_TYPE(CTCLossV2, CtcLossKernel<float>);

}  // namespace penstock
