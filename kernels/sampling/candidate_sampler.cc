// SPDX-License-Identifier: Apache-2.0
//
// The candidate samplers: draw classes once for a whole batch. For each drawn class and each true
// class, they return the expected number of times that the class is drawn.
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/mutex.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"
#include "kernels/random/random_stream.h"
#include "kernels/sampling/sampler.h"

namespace penstock {
namespace {

// Returns the expected number of times that a class of this probability occurs among `candidates`
// candidates, which took `draws` draws.
float ExpectedCount(float probability, int64_t candidates, int64_t draws) {
  if (draws == candidates) return probability * static_cast<float>(candidates);
  // 1 - (1 - p)^draws, accurate for small p.
  return -std::expm1(static_cast<float>(draws) * std::log1p(-probability));
}

// The base of the samplers: reads the attributes, checks the inputs and sets the outputs.
class CandidateSampler : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("num_true", &num_true_));
    RETURN_IF_ERROR(node.Attr("num_sampled", &num_sampled_));
    RETURN_IF_ERROR(node.Attr("unique", &unique_));
    return stream_.Init(node);
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& true_classes = ctx.input(0);
    if (true_classes.rank() != 2) {
      return InvalidArgument("true_classes must be a matrix, has shape ",
                             true_classes.shape().ToString());
    }
    if (true_classes.dim(1) != num_true_) {
      return InvalidArgument("true_classes must have num_true columns, expected: ", num_true_,
                             " was: ", true_classes.dim(1));
    }
    ASSIGN_OR_RETURN(const int64_t range, Range(ctx));
    for (const int64_t seen : true_classes.flat<int64_t>()) {
      if (seen >= 0 && seen < range) continue;
      return InvalidArgument("`true_candidate` out of range [0, ", range, "), received ", seen);
    }
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make({num_sampled_}));
    Tensor *candidates, *true_counts, *counts;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &candidates));
    RETURN_IF_ERROR(ctx.Allocate(1, true_classes.shape(), &true_counts));
    RETURN_IF_ERROR(ctx.Allocate(2, shape, &counts));
    return Sample(ctx, {.true_classes = true_classes.flat<int64_t>(),
                        .candidates = candidates->mutable_data<int64_t>(),
                        .true_counts = true_counts->mutable_data<float>(),
                        .counts = counts->mutable_data<float>()});
  }

 protected:
  struct Batch {
    absl::Span<const int64_t> true_classes;
    int64_t* candidates;
    float* true_counts;
    float* counts;
  };
  // Returns the number of classes, or an error if the sampler cannot be made.
  virtual StatusOr<int64_t> Range(KernelContext& ctx) = 0;
  virtual Status Sample(KernelContext& ctx, const Batch& batch) = 0;

  int64_t num_true_ = 0, num_sampled_ = 0;
  bool unique_ = false;
  RandomStream stream_;
};

// The base of kernels that draw from a Sampler.
class DrawingSampler : public CandidateSampler {
 protected:
  // Makes the sampler, or returns the error in the node's attributes. Called by the first execution
  // that needs it.
  virtual StatusOr<std::unique_ptr<Sampler>> MakeSampler(Env& env) const = 0;

  StatusOr<int64_t> Range(KernelContext& ctx) override {
    WriterMutexLock lock(mu_);
    if (sampler_ == nullptr) {
      ASSIGN_OR_RETURN(sampler_, MakeSampler(*ctx.step().env));
    }
    return sampler_->range();
  }

  Status Sample(KernelContext& ctx, const Batch& batch) override {
    bool learns = false;
    {
      ReaderMutexLock lock(mu_);
      if (unique_ && num_sampled_ > sampler_->possible()) {
        return InvalidArgument("Sampler's range is too small.");
      }
      RETURN_IF_ERROR(Draw(ctx, batch));
      learns = sampler_->learns();
    }
    if (learns) {
      WriterMutexLock lock(mu_);
      sampler_->Learn(batch.true_classes);
    }
    return OkStatus();
  }

 private:
  Status Draw(KernelContext& ctx, const Batch& batch) ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    // Reserves as many random numbers as TensorFlow, so that the candidates of the next step are
    // TensorFlow's, too.
    BoundedNumbers numbers(
        stream_.Reserve(static_cast<uint64_t>(num_sampled_) * 512, *ctx.step().env));
    int64_t draws = num_sampled_;
    if (unique_) {
      ASSIGN_OR_RETURN(draws, DrawUnique(ctx, &numbers, batch.candidates));
    } else {
      for (int64_t i = 0; i < num_sampled_; ++i) batch.candidates[i] = sampler_->Draw(numbers);
    }
    const auto expected = [&](int64_t candidate) ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return ExpectedCount(sampler_->Probability(candidate), num_sampled_, draws);
    };
    for (int64_t i = 0; i < num_sampled_; ++i) batch.counts[i] = expected(batch.candidates[i]);
    for (size_t i = 0; i < batch.true_classes.size(); ++i) {
      batch.true_counts[i] = expected(batch.true_classes[i]);
    }
    return OkStatus();
  }

  // Draws num_sampled distinct classes; returns the number of draws that it took. Stops with the
  // cancellation's status if the step is cancelled.
  StatusOr<int64_t> DrawUnique(KernelContext& ctx, BoundedNumbers* numbers, int64_t* candidates)
      ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    constexpr int64_t kDrawsPerCheck = 1 << 16;
    absl::flat_hash_set<int64_t> drawn;
    drawn.reserve(num_sampled_);
    int64_t draws = 0;
    for (int64_t found = 0; found < num_sampled_; ++draws) {
      const int64_t candidate = sampler_->Draw(*numbers);
      if (drawn.insert(candidate).second) candidates[found++] = candidate;
      // Drawing the rarest classes may take long, so the loop checks for cancellation.
      const Cancellation* cancellation = ctx.step().cancellation;
      if (draws % kDrawsPerCheck == 0 && cancellation != nullptr && cancellation->cancelled()) {
        return cancellation->status();
      }
    }
    return draws;
  }

  SharedMutex mu_;
  std::unique_ptr<Sampler> sampler_ ABSL_GUARDED_BY(mu_)
      ABSL_PT_GUARDED_BY(mu_);  // Sampler::Learn may change the sampler
};

template <class MakeFromRange>
class RangeSampler final : public DrawingSampler {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("range_max", &range_));
    return CandidateSampler::Init(node);
  }
  StatusOr<std::unique_ptr<Sampler>> MakeSampler(Env&) const override {
    return MakeFromRange()(range_);
  }

 private:
  int64_t range_ = 0;
};

class FixedUnigramSampler final : public DrawingSampler {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("range_max", &range_));
    RETURN_IF_ERROR(node.Attr("vocab_file", &file_));
    RETURN_IF_ERROR(node.Attr("unigrams", &unigrams_));
    RETURN_IF_ERROR(node.Attr("distortion", &distortion_));
    RETURN_IF_ERROR(node.Attr("num_reserved_ids", &num_reserved_));
    RETURN_IF_ERROR(node.Attr("num_shards", &num_shards_));
    RETURN_IF_ERROR(node.Attr("shard", &shard_));
    if (file_.empty() && unigrams_.empty()) {
      return InvalidArgument("Must provide either vocab_file or unigrams.");
    }
    if (!file_.empty() && !unigrams_.empty()) {
      return InvalidArgument("Must only provide one of vocab_file and unigrams.");
    }
    if (num_reserved_ > range_) {
      return InvalidArgument("num_reserved_ids is ", num_reserved_, ", range_max is ", range_);
    }
    constexpr int64_t kReservedMax = int64_t{1} << 24;  // each class takes 24 bytes
    if (num_reserved_ > kReservedMax) {
      return ResourceExhausted("num_reserved_ids is ", num_reserved_, ", at most ", kReservedMax,
                               " are possible");
    }
    return CandidateSampler::Init(node);
  }

  StatusOr<std::unique_ptr<Sampler>> MakeSampler(Env& env) const override {
    std::vector<float> counts = unigrams_;
    if (!file_.empty()) {
      ASSIGN_OR_RETURN(counts, ReadCounts(env));
    }
    // Reserved classes are never drawn. Of the other classes, only the classes of this shard are
    // drawn.
    std::vector<float> weights;
    for (int64_t id = 0; id < num_reserved_ + static_cast<int64_t>(counts.size()); ++id) {
      if (id < num_reserved_) {
        weights.push_back(0);
      } else if (id % num_shards_ == shard_) {
        weights.push_back(std::pow(counts[id - num_reserved_], distortion_));
      }
    }
    if (static_cast<int64_t>(weights.size()) != range_) {
      return InvalidArgument("range is ", range_, " must be equal to weights size  ",
                             weights.size());
    }
    return NewWeightedSampler(std::move(weights));
  }

 private:
  // Returns the last column of each line of the file. InvalidArgument if it is not a number.
  StatusOr<std::vector<float>> ReadCounts(Env& env) const {
    ASSIGN_OR_RETURN(const std::string text, env.ReadFile(file_));
    std::vector<float> counts;
    for (const string_view line : absl::StrSplit(text, '\n')) {
      if (line.empty()) continue;
      const std::vector<string_view> columns = absl::StrSplit(line, ',');
      float count;
      if (!absl::SimpleAtof(columns.back(), &count)) {
        return InvalidArgument("Wrong vocabulary format at line: ", line);
      }
      counts.push_back(count);
    }
    return counts;
  }

  int64_t range_ = 0, num_reserved_ = 0, num_shards_ = 1, shard_ = 0;
  float distortion_ = 1;
  std::string file_;
  std::vector<float> unigrams_;
};

// Returns every class once.
class AllSampler final : public CandidateSampler {
  StatusOr<int64_t> Range(KernelContext&) override { return num_sampled_; }
  Status Sample(KernelContext&, const Batch& batch) override {
    for (int64_t i = 0; i < num_sampled_; ++i) batch.candidates[i] = i;
    std::fill_n(batch.counts, num_sampled_, 1.0f);
    std::fill_n(batch.true_counts, batch.true_classes.size(), 1.0f);
    return OkStatus();
  }
};

Status SamplerShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const PartialShape true_classes, s.WithRank(0, 2));
  const int64_t num_true = s.attr<int64_t>("num_true"), sampled = s.attr<int64_t>("num_sampled");
  const int64_t columns = true_classes.dim(1);
  if (columns != PartialShape::kUnknown && columns != num_true) {
    return InvalidArgument("true_classes must have num_true columns, expected: ", num_true,
                           " was: ", columns);
  }
  RETURN_IF_ERROR(SetOutput(s, 0, {sampled}));
  RETURN_IF_ERROR(SetOutput(s, 1, {true_classes.dim(0), num_true}));
  return SetOutput(s, 2, {sampled});
}

OpDef SamplerOp(const char* doc, std::vector<AttrDef> more = {{"range_max", Ints{.min = 1}}},
                Attrs example = {{"range_max", 9}}) {
  OpDef op{
      .doc = doc,
      .inputs = {{"true_classes", "int64"}},
      .outputs = {{"sampled_candidates", "int64"},
                  {"true_expected_count", "float"},
                  {"sampled_expected_count", "float"}},
      .attrs = {{"num_true", Ints{.min = 1}},
                {"num_sampled", Ints{.min = 1}},
                {"unique", Bools{}},
                {"seed", 0},
                {"seed2", 0}},
      .shape = SamplerShape,
      .gradient = NoGradient,
      .stateful = true,
  };
  op.attrs.insert(op.attrs.end(), more.begin(), more.end());
  example.insert({{"num_true", 2}, {"num_sampled", 5}, {"unique", true}});
  op.examples = {{.inputs = {{{{2, 2}, {0, 3, 1, 4}}}}, .attrs = std::move(example)}};
  return op;
}

OP(UniformCandidateSampler) {
  return SamplerOp("Samples candidates; all classes have the same probability.");
}
OP(LogUniformCandidateSampler) {
  return SamplerOp(
      "Samples candidates by Zipf's law: class k has a probability of about 1 / (k + "
      "1).");
}

OP(LearnedUnigramCandidateSampler) {
  return SamplerOp(
      "Samples candidates with the frequencies that they had as true classes of earlier "
      "steps.");
}

OP(ThreadUnsafeUnigramCandidateSampler) {
  return SamplerOp("The same as LearnedUnigramCandidateSampler.");
}

OP(FixedUnigramCandidateSampler) {
  return SamplerOp(
      "Samples candidates with the frequencies given by counts in a file (the last "
      "column of each line) or in a list.",
      {{"range_max", Ints{.min = 1}},
       {"vocab_file", ""},
       {"distortion", 1.0f},
       {"num_reserved_ids", 0},
       {"num_shards", Ints{.min = 1}, 1},
       {"shard", Ints{.min = 0}, 0},
       {"unigrams", FloatList{}, std::vector<float>{}}},
      {{"range_max", 5}, {"unigrams", std::vector<float>{1, 2, 3, 4, 5}}});
}

OP(AllCandidateSampler) {
  return SamplerOp("Returns every class below num_sampled as a candidate.", {}, {});
}

struct FromUniform {
  auto operator()(int64_t range) const { return NewUniformSampler(range); }
};
struct FromLogUniform {
  auto operator()(int64_t range) const { return NewLogUniformSampler(range); }
};
struct FromLearned {
  auto operator()(int64_t range) const { return NewLearnedSampler(range); }
};
KERNEL_ANY_TYPE(UniformCandidateSampler, RangeSampler<FromUniform>);
KERNEL_ANY_TYPE(LogUniformCandidateSampler, RangeSampler<FromLogUniform>);
KERNEL_ANY_TYPE(LearnedUnigramCandidateSampler, RangeSampler<FromLearned>);
KERNEL_ANY_TYPE(ThreadUnsafeUnigramCandidateSampler, RangeSampler<FromLearned>);
KERNEL_ANY_TYPE(FixedUnigramCandidateSampler, FixedUnigramSampler);
KERNEL_ANY_TYPE(AllCandidateSampler, AllSampler);

}  // namespace
}  // namespace penstock
