// SPDX-License-Identifier: Apache-2.0
//
// NegTrain: one step of skip-gram training with negative samples, over two tables of embeddings. T.
// Mikolov et al.: Distributed Representations of Words and Phrases and their Compositionality. NIPS
// 2013.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/env.h"
#include "core/op/registry.h"
#include "kernels/random/distributions.h"
#include "kernels/random/philox.h"
#include "kernels/state/variable_kernel.h"

namespace penstock {
namespace {

// The maximum number of samples per pair, because drawing cannot be cancelled. Programs use a few
// tens of samples.
constexpr int64_t kSamplesMax = 1 << 20;

// Draws words with probabilities proportional to their counts to the power of 3/4, as in the paper.
class WordSampler {
 public:
  Status Init(const std::vector<int64_t>& counts) {
    double sum = 0;
    for (const int64_t count : counts) {
      if (count < 0) return InvalidArgument("vocab_count holds ", count);
      sums_.push_back(sum += std::pow(static_cast<double>(count), 0.75));
    }
    return OkStatus();
  }
  int64_t vocabulary() const { return static_cast<int64_t>(sums_.size()); }
  bool empty() const { return sums_.empty() || sums_.back() <= 0; }
  // Draws a word. REQUIRES: !empty().
  int64_t operator()(PhiloxNumbers& numbers) const {
    const double at = UnitDouble(numbers(), numbers()) * sums_.back();
    const auto found = std::upper_bound(sums_.begin(), sums_.end(), at) - sums_.begin();
    return std::min<int64_t>(found, vocabulary() - 1);
  }

 private:
  std::vector<double> sums_;  // prefix sums of the weights of the words
};

float Dot(const float* a, const float* b, int64_t n) {
  float dot = 0;
  for (int64_t i = 0; i < n; ++i) dot += a[i] * b[i];
  return dot;
}

// Adds `step` times `in` to `out`, and `step` times the old `out` to `moved`, the change of `in`.
void MoveTowards(const float* in, float step, int64_t n, float* out, float* moved) {
  for (int64_t i = 0; i < n; ++i) {
    moved[i] += out[i] * step;
    out[i] += in[i] * step;
  }
}

class NegTrainKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    std::vector<int64_t> counts;
    RETURN_IF_ERROR(node.Attr("vocab_count", &counts));
    RETURN_IF_ERROR(node.Attr("num_negative_samples", &samples_));
    if (samples_ > kSamplesMax) {
      return InvalidArgument("node '", node.name, "': num_negative_samples must be at most ",
                             kSamplesMax, ", is ", samples_);
    }
    RETURN_IF_ERROR(sampler_.Init(counts));
    if (samples_ <= 0 || !sampler_.empty()) return OkStatus();
    return InvalidArgument("node '", node.name, "': vocab_count has no words to sample from");
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const auto in, VariableInput(ctx, 0, DType::kFloat));
    ASSIGN_OR_RETURN(const auto out, VariableInput(ctx, 1, DType::kFloat));
    Variable* const variables[] = {in.get(), out.get()};
    int64_t length = 0;
    std::vector<int64_t> out_rows;  // rows that changed
    const auto train = [&](absl::Span<Tensor* const> tables) -> Status {
      RETURN_IF_ERROR(Check(ctx, *tables[0], *tables[1]));
      length = tables[0]->dim(1);
      Train(ctx, *tables[0], *tables[1], &out_rows);
      return OkStatus();
    };
    const auto changed = [&](size_t table) {
      if (length == 0) return Slices::None();
      return table == 0 ? Slices::Rows(ctx.input(2), length) : Slices(length, out_rows);
    };
    return Variable::Update(variables, ctx.origin(), train, changed);
  }

 private:
  Status Check(const KernelContext& ctx, const Tensor& in, const Tensor& out) const {
    if (in.rank() != 2 || in.shape() != out.shape()) {
      return InvalidArgument("w_in and w_out must be matrices of one shape, have shapes ",
                             in.shape().ToString(), " and ", out.shape().ToString());
    }
    if (in.dim(0) != sampler_.vocabulary()) {
      return InvalidArgument("vocab_size mismatches: ", in.dim(0), " vs. ", sampler_.vocabulary());
    }
    const Tensor &examples = ctx.input(2), &labels = ctx.input(3);
    if (examples.rank() != 1 || labels.shape() != examples.shape()) {
      return InvalidArgument("examples and labels must be vectors of one length, have shapes ",
                             examples.shape().ToString(), " and ", labels.shape().ToString());
    }
    if (ctx.input(4).rank() != 0) {
      return InvalidArgument("lr must be a scalar, has shape ", ctx.input(4).shape().ToString());
    }
    for (const Tensor* words : {&examples, &labels}) {
      for (const int32_t word : words->flat<int32_t>()) {
        if (word < 0 || word >= in.dim(0)) {
          return InvalidArgument(words == &examples ? "examples" : "labels", " hold word ", word,
                                 ", the vocabulary has ", in.dim(0));
        }
      }
    }
    return OkStatus();
  }

  void Train(KernelContext& ctx, Tensor& in, Tensor& out, std::vector<int64_t>* out_rows) const {
    Env& env = *ctx.step().env;
    PhiloxNumbers numbers(Philox::FromSeeds(env.RandomU64(), env.RandomU64()));
    const int32_t *examples = ctx.input(2).data<int32_t>(), *labels = ctx.input(3).data<int32_t>();
    const float rate = ctx.input(4).scalar<float>();
    const int64_t n = in.dim(1);
    std::vector<float> moved(n);
    const auto out_row = [&](int64_t word) {
      out_rows->push_back(word);
      return out.mutable_data<float>() + word * n;
    };
    for (int64_t k = 0; k < ctx.input(2).num_elements(); ++k) {
      float* const v = in.mutable_data<float>() + examples[k] * n;
      std::fill(moved.begin(), moved.end(), 0.f);
      // Adds the gradients of log sigmoid(v . label), and of log sigmoid(-v . sample) for each
      // sample.
      float* const label = out_row(labels[k]);
      MoveTowards(v, rate / (std::exp(Dot(v, label, n)) + 1), n, label, moved.data());
      for (int64_t i = 0; i < samples_; ++i) {
        const int64_t word = sampler_(numbers);
        if (word == labels[k]) continue;
        float* const sample = out_row(word);
        MoveTowards(v, -rate / (std::exp(-Dot(v, sample, n)) + 1), n, sample, moved.data());
      }
      for (int64_t i = 0; i < n; ++i) v[i] += moved[i];
    }
  }

  int64_t samples_ = 0;
  WordSampler sampler_;
};

OP(NegTrain) {
  return {
      .doc =
          "Trains word embeddings by negative sampling: with pairs of words that occur "
          "together, and with random pairs.",
      .inputs = {{"w_in", Ref("float")},
                 {"w_out", Ref("float")},
                 {"examples", "int32"},
                 {"labels", "int32"},
                 {"lr", "float"}},
      .attrs = {{"vocab_count", IntList{}}, {"num_negative_samples", Ints{}}},
      .shape = NoOutputs,
      .examples = {{.inputs = {{{{3, 2}}}, {{{3, 2}}}, {{{2}, {0, 1}}}, {{{2}, {2, 0}}}, {{{}}}},
                    .attrs = {{"vocab_count", std::vector<int64_t>{3, 2, 1}},
                              {"num_negative_samples", 2}},
                    .check_gradient = false}},
      .stateful = true,
  };
}
KERNEL_ANY_TYPE(NegTrain, NegTrainKernel);

}  // namespace
}  // namespace penstock
