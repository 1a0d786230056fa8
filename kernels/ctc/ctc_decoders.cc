// SPDX-License-Identifier: Apache-2.0
//
// CTCGreedyDecoder takes the best class of each step; CTCBeamSearchDecoder searches for the label
// sequences with the greatest probability, summed over all their alignments.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "kernels/ctc/ctc_input.h"
#include "kernels/ctc/log_add.h"

namespace penstock {
namespace {

template <class T>
class GreedyDecoder final : public Kernel {
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("merge_repeated", &merge_));
    return node.Attr("blank_index", &blank_);
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const CtcInput in,
                     CtcInput::Of(ctx.input(0), ctx.input(1), StatusCode::kFailedPrecondition));
    if (blank_ < -in.classes || blank_ >= in.classes) {
      return InvalidArgument("blank_index expected to be between ", -in.classes, " and ",
                             in.classes - 1, " but was ", blank_);
    }
    const int64_t blank = blank_ < 0 ? blank_ + in.classes : blank_;
    Tensor* log_probability;
    RETURN_IF_ERROR(ctx.Allocate(3, Shape({in.batch, 1}), &log_probability));
    std::vector<std::vector<int64_t>> labels(in.batch);
    const T* x = ctx.input(0).data<T>();
    for (int64_t b = 0; b < in.batch; ++b) {
      T sum(0);
      int64_t previous = -1;
      for (int64_t t = 0; t < in.lengths[b]; ++t) {
        const T* logits = x + in.at(t, b);
        const int64_t best = std::max_element(logits, logits + in.classes) - logits;
        sum -= logits[best];
        if (best != blank && !(merge_ && best == previous)) labels[b].push_back(best);
        previous = best;
      }
      log_probability->mutable_data<T>()[b] = sum;
    }
    return OutputLabels(ctx, labels, 0, 1);
  }

  bool merge_ = false;
  int64_t blank_ = -1;
};

// Log probabilities of a label sequence after some steps: `blank` is summed over the alignments
// that end in a blank, `label` over those that end in the sequence's last label, `total` over both.
struct Probability {
  double total = kLogZero, blank = kLogZero, label = kLogZero;
};

// A label sequence: a node of the prefix tree, with its last label and its parent. `before` and
// `now` are its probabilities before and after the current step.
struct Prefix {
  Prefix* parent = nullptr;
  int64_t label = -1;
  Probability before, now;
  std::map<int64_t, Prefix*> children = {};

  bool active() const { return now.total != kLogZero; }  // true if the prefix is in the beam
};

class BeamSearch {
 public:
  BeamSearch(int64_t width, int64_t classes) : width_(width), classes_(classes) {
    all_.push_back({.now = {.total = 0, .blank = 0}});
    beam_.push_back(&all_.front());
  }

  // Processes one step; the last class is the blank. (Graves 2012, section 7.5.)
  template <class T>
  void Step(const T* logits) {
    const std::vector<double> log_y = LogSoftmax(logits);
    std::vector<Prefix*> prefixes = std::exchange(beam_, {});
    Sort(&prefixes);
    for (Prefix* p : prefixes) p->before = p->now;
    for (Prefix* p : prefixes) Extend(p, log_y);
    for (Prefix* p : prefixes) {
      if (!MayReachBeam(p->before)) continue;
      for (int64_t c = 0; c < classes_ - 1; ++c) Branch(p, c, log_y[c]);
    }
  }

  // Returns the `n` best label sequences and their log probabilities, or all if there are fewer
  // than `n`. If `merge`, repeated labels of a sequence become one.
  std::vector<std::pair<std::vector<int64_t>, double>> Best(int64_t n, bool merge) {
    Sort(&beam_);
    std::vector<std::pair<std::vector<int64_t>, double>> best;
    for (const Prefix* p : beam_) {
      if (static_cast<int64_t>(best.size()) == n) break;
      std::vector<int64_t> labels;
      int64_t previous = -1;
      for (const Prefix* l = p; l->parent != nullptr; l = l->parent) {
        if (!merge || l->label != previous) labels.push_back(l->label);
        previous = l->label;
      }
      std::reverse(labels.begin(), labels.end());
      best.emplace_back(std::move(labels), p->now.total);
    }
    return best;
  }

 private:
  static bool Better(const Prefix* a, const Prefix* b) { return a->now.total > b->now.total; }
  static void Sort(std::vector<Prefix*>* prefixes) {
    std::stable_sort(prefixes->begin(), prefixes->end(), Better);
  }

  template <class T>
  std::vector<double> LogSoftmax(const T* logits) const {
    const double max = *std::max_element(logits, logits + classes_);
    double sum = 0;
    for (int64_t c = 0; c < classes_; ++c) sum += std::exp(logits[c] - max);
    std::vector<double> result(logits, logits + classes_);
    for (double& x : result) x -= max + std::log(sum);
    return result;
  }

  // Updates the probability that the sequence stays the same in this step.
  void Extend(Prefix* p, const std::vector<double>& log_y) {
    if (p->parent != nullptr) {
      if (p->parent->active()) {
        const Probability& parent = p->parent->before;
        p->now.label =
            LogAdd(p->now.label, p->label == p->parent->label ? parent.blank : parent.total);
      }
      p->now.label += log_y[p->label];
    }
    p->now.blank = p->before.total + log_y[classes_ - 1];
    p->now.total = LogAdd(p->now.blank, p->now.label);
    Push(p);
  }

  // Adds the sequence, extended by one label, to the beam, unless the extended sequence is there
  // already or too improbable. If the beam is full, removes the worst sequence.
  void Branch(Prefix* p, int64_t label, double log_y) {
    const auto found = p->children.find(label);
    if (found != p->children.end() && found->second->active()) return;
    const double from = label == p->label ? p->before.blank : p->before.total;
    const Probability now{.total = log_y + from, .label = log_y + from};
    if (!MayReachBeam(now)) {
      if (found != p->children.end()) found->second->before = {};
      return;
    }
    Prefix*& child = p->children[label];
    if (child == nullptr) child = &all_.emplace_back(Prefix{p, label});
    child->now = now;
    if (static_cast<int64_t>(beam_.size()) == width_) {
      std::pop_heap(beam_.begin(), beam_.end(), Better);
      beam_.back()->now = {};
      beam_.pop_back();
    }
    Push(child);
  }

  // Adds a prefix to the beam, a heap whose front is the worst prefix.
  void Push(Prefix* p) {
    beam_.push_back(p);
    std::push_heap(beam_.begin(), beam_.end(), Better);
  }
  bool MayReachBeam(const Probability& p) const {
    return p.total > kLogZero &&
           (static_cast<int64_t>(beam_.size()) < width_ || p.total > beam_.front()->now.total);
  }

  const int64_t width_, classes_;
  // Owns the prefixes. A tree of owning pointers would overflow the stack when it is destroyed.
  std::deque<Prefix> all_;
  std::vector<Prefix*> beam_;
};

template <class T>
class BeamSearchDecoder final : public Kernel {
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("beam_width", &width_));
    RETURN_IF_ERROR(node.Attr("top_paths", &paths_));
    RETURN_IF_ERROR(node.Attr("merge_repeated", &merge_));
    if (paths_ > width_) return InvalidArgument("requested more paths than the beam width.");
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const CtcInput in,
                     CtcInput::Of(ctx.input(0), ctx.input(1), StatusCode::kFailedPrecondition));
    const T* x = ctx.input(0).data<T>();
    std::vector<std::vector<std::pair<std::vector<int64_t>, double>>> best(in.batch);
    const double one_ns =
        100.0 * static_cast<double>(in.time * in.classes) * static_cast<double>(width_);
    ctx.threads().ParallelFor(in.batch, one_ns, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        BeamSearch search(width_, in.classes);
        for (int64_t t = 0; t < in.lengths[b]; ++t) search.Step(x + in.at(t, b));
        best[b] = search.Best(paths_, merge_);
      }
    });
    Tensor* log_probability;
    RETURN_IF_ERROR(
        ctx.Allocate(static_cast<int>(3 * paths_), Shape({in.batch, paths_}), &log_probability));
    for (int64_t p = 0; p < paths_; ++p) {
      std::vector<std::vector<int64_t>> labels(in.batch);
      for (int64_t b = 0; b < in.batch; ++b) {
        if (static_cast<int64_t>(best[b].size()) <= p) {
          return InvalidArgument("Less leaves in the beam search than requested: ", best[b].size(),
                                 " of ", paths_, " paths in batch ", b);
        }
        labels[b] = best[b][p].first;
        log_probability->mutable_data<T>()[b * paths_ + p] = static_cast<T>(best[b][p].second);
      }
      RETURN_IF_ERROR(OutputLabels(ctx, labels, static_cast<int>(p), static_cast<int>(paths_)));
    }
    return OkStatus();
  }

  int64_t width_ = 1, paths_ = 1;
  bool merge_ = true;
};

const DTypes kTypes = {DType::kFloat, DType::kDouble};
const ExampleTensor kLogits = {{4, 2, 3}}, kLengths = {{2}, {4, 3}};

}  // namespace

OP(CTCGreedyDecoder) {
  return {
      .doc =
          "Decodes the most probable class of each step, without blanks and (with "
          "merge_repeated) without repetitions, into a sparse matrix. Also returns the "
          "negative sum of the logits of these classes.",
      .inputs = {{"inputs", "T"}, {"sequence_length", "int32"}},
      .outputs = {{"decoded_indices", "int64"},
                  {"decoded_values", "int64"},
                  {"decoded_shape", "int64"},
                  {"log_probability", "T"}},
      .types = {{"T", kTypes, DType::kFloat}},
      .attrs = {{"merge_repeated", false}, {"blank_index", -1}},
      .shape = [](ShapeScope& s) { return DecoderShape(s, 1); },
      .gradient = NoGradient,
      .examples = {{.inputs = {{kLogits}, {kLengths}}}},
  };
}
KERNEL(CTCGreedyDecoder, GreedyDecoder, float, double);

OP(CTCBeamSearchDecoder) {
  return {
      .doc =
          "Decodes by a beam search of width beam_width: returns the top_paths most "
          "probable label sequences as sparse matrices, and their log probabilities. The "
          "last class is the blank.",
      .inputs = {{"inputs", "T"}, {"sequence_length", "int32"}},
      .outputs = {{"decoded_indices", Repeat("top_paths", "int64")},
                  {"decoded_values", Repeat("top_paths", "int64")},
                  {"decoded_shape", Repeat("top_paths", "int64")},
                  {"log_probability", "T"}},
      .types = {{"T", kTypes, DType::kFloat}},
      .attrs = {{"beam_width", Ints{.min = 1}},
                {"top_paths", Ints{.min = 1}},
                {"merge_repeated", true}},
      .shape =
          [](ShapeScope& s) {
            return DecoderShape(s, static_cast<int>(s.attr<int64_t>("top_paths")));
          },
      .gradient = NoGradient,
      .examples = {{.inputs = {{kLogits}, {kLengths}},
                    .attrs = {{"beam_width", 5}, {"top_paths", 2}}}},
  };
}
KERNEL(CTCBeamSearchDecoder, BeamSearchDecoder, float, double);

}  // namespace penstock
