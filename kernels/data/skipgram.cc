// SPDX-License-Identifier: Apache-2.0
//
// Skipgram: pairs of nearby words of a text file, batch after batch, for training embeddings. T.
// Mikolov et al.: Distributed Representations of Words and Phrases and their Compositionality. NIPS
// 2013.
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_split.h"
#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/io/file_kernel.h"
#include "kernels/random/distributions.h"
#include "kernels/random/philox.h"

namespace penstock {
namespace {

// A text as word numbers. Word 0 stands for all words that are too rare.
struct Corpus {
  std::vector<std::string> words = {"UNK"};
  std::vector<int32_t> counts = {0};
  std::vector<int32_t> text;
};

Corpus ReadCorpus(const std::string& contents, int64_t min_count) {
  const std::vector<string_view> text =
      absl::StrSplit(contents, absl::ByAnyChar(" \t\r\n\v\f"), absl::SkipEmpty());
  struct Word {
    string_view text;
    int64_t count = 0;
  };
  std::vector<Word> words;  // in order of their first occurrence
  absl::flat_hash_map<string_view, size_t> places;
  for (const string_view word : text) {
    const auto [at, is_new] = places.try_emplace(word, words.size());
    if (is_new) words.push_back({word});
    ++words[at->second].count;
  }
  std::erase_if(words, [&](const Word& word) { return word.count < min_count; });
  std::stable_sort(words.begin(), words.end(),
                   [](const Word& a, const Word& b) { return a.count > b.count; });
  Corpus corpus;
  absl::flat_hash_map<string_view, int32_t> numbers;
  const auto saturated = [](int64_t n) {
    return static_cast<int32_t>(std::min<int64_t>(n, INT32_MAX));
  };
  int64_t rare = static_cast<int64_t>(text.size());
  for (const Word& word : words) {
    numbers[word.text] = static_cast<int32_t>(corpus.words.size());
    corpus.words.emplace_back(word.text);
    corpus.counts.push_back(saturated(word.count));
    rare -= word.count;
  }
  corpus.counts[0] = saturated(rare);
  corpus.text.reserve(text.size());
  for (const string_view word : text) {
    const auto found = numbers.find(word);
    corpus.text.push_back(found == numbers.end() ? 0 : found->second);
  }
  return corpus;
}

// Reads the corpus repeatedly, without end. Frequent words are dropped at random; each remaining
// word is paired with its neighbours up to a distance that is drawn for it.
class PairReader {
 public:
  PairReader(const Corpus& corpus, int64_t window, float subsample, Philox stream)
      : corpus_(corpus), window_(window), subsample_(subsample), numbers_(stream) {}

  struct Pair {
    int32_t example, label;
  };
  // Returns the next pair. Checks for cancellation, because the search is long if nearly all words
  // are dropped.
  StatusOr<Pair> Next(const KernelContext& ctx) {
    while (label_ >= label_end_ || label_ == word_) {
      if (label_ < label_end_) {
        ++label_;  // a word is not its own neighbour
        continue;
      }
      if (started_) {
        ++words_processed_;
        ++word_;
      }
      if (word_ >= static_cast<int64_t>(sentence_.size())) RETURN_IF_ERROR(NextSentence(ctx));
      started_ = true;
      const int64_t reach = 1 + static_cast<int64_t>(numbers_() % static_cast<uint64_t>(window_));
      label_ = std::max<int64_t>(0, word_ - reach);
      label_end_ = std::min(static_cast<int64_t>(sentence_.size()), word_ + reach + 1);
    }
    return Pair{sentence_[word_], sentence_[label_++]};
  }

  int32_t epoch() const { return epoch_; }
  int64_t words_processed() const { return words_processed_; }

 private:
  static constexpr size_t kSentenceWords = 1000;

  Status NextSentence(const KernelContext& ctx) {
    sentence_.clear();
    word_ = 0;
    for (int64_t tried = 0; sentence_.size() < kSentenceWords; ++tried) {
      if (tried % 1024 == 0) RETURN_IF_ERROR(CheckNotCancelled(ctx));
      const int32_t word = corpus_.text[position_];
      if (++position_ == static_cast<int64_t>(corpus_.text.size())) {
        position_ = 0;
        ++epoch_;
      }
      if (Keep(word)) sentence_.push_back(word);
    }
    return OkStatus();
  }

  // Returns whether to keep an occurrence of the word: equation 5 of the paper, as in its authors'
  // program.
  bool Keep(int32_t word) {
    if (!(subsample_ > 0)) return true;
    const double threshold = double{subsample_} * static_cast<double>(corpus_.text.size());
    const double count = corpus_.counts[word];
    return UnitFloat(numbers_()) <= (std::sqrt(count / threshold) + 1) * threshold / count;
  }

  const Corpus& corpus_;
  const int64_t window_;
  const float subsample_;
  PhiloxNumbers numbers_;
  int64_t position_ = 0;  // position in the corpus
  std::vector<int32_t> sentence_;
  bool started_ = false;
  int64_t word_ = 0;  // index in the sentence
  int64_t label_ = 0, label_end_ = 0;
  int32_t epoch_ = 0;
  int64_t words_processed_ = 0;
};

class SkipgramKernel : public FileKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("filename", &path_));
    RETURN_IF_ERROR(node.Attr("batch_size", &batch_));
    RETURN_IF_ERROR(node.Attr("window_size", &window_));
    RETURN_IF_ERROR(node.Attr("min_count", &min_count_));
    return node.Attr("subsample", &subsample_);
  }

 protected:
  // Outputs the next batch. A batch begins where the previous one ended, so steps take turns.
  Status Run(KernelContext& ctx) const override {
    MutexLock lock(mu_);
    if (reader_ == nullptr) RETURN_IF_ERROR(Open(*ctx.step().env));
    Tensor *examples, *labels;
    RETURN_IF_ERROR(ctx.Allocate(5, Shape{batch_}, &examples));
    RETURN_IF_ERROR(ctx.Allocate(6, Shape{batch_}, &labels));
    for (int64_t i = 0; i < batch_; ++i) {
      ASSIGN_OR_RETURN(const PairReader::Pair pair, reader_->Next(ctx));
      examples->mutable_data<int32_t>()[i] = pair.example;
      labels->mutable_data<int32_t>()[i] = pair.label;
    }
    ctx.SetOutput(0, words_);
    ctx.SetOutput(1, counts_);
    ctx.SetOutput(2, Tensor::Scalar(static_cast<int64_t>(corpus_.text.size())));
    ctx.SetOutput(3, Tensor::Scalar(reader_->epoch()));
    ctx.SetOutput(4, Tensor::Scalar(reader_->words_processed()));
    return OkStatus();
  }

 private:
  Status Open(Env& env) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    ASSIGN_OR_RETURN(const std::string contents, env.ReadFile(path_));
    corpus_ = ReadCorpus(contents, min_count_);
    const auto words = static_cast<int64_t>(corpus_.text.size());
    if (words / 10 < window_) {
      return InvalidArgument("The text file ", path_, " contains too little data: ", words,
                             " words");
    }
    words_ = Tensor::Vector(corpus_.words);
    counts_ = Tensor::Vector(corpus_.counts);
    reader_ = std::make_unique<PairReader>(corpus_, window_, subsample_,
                                           Philox::FromSeeds(env.RandomU64(), env.RandomU64()));
    return OkStatus();
  }

  std::string path_;
  int64_t batch_ = 0, window_ = 0, min_count_ = 0;
  float subsample_ = 0;
  mutable Mutex mu_;
  mutable Corpus corpus_ ABSL_GUARDED_BY(mu_);
  mutable Tensor words_ ABSL_GUARDED_BY(mu_), counts_ ABSL_GUARDED_BY(mu_);
  mutable std::unique_ptr<PairReader> reader_ ABSL_GUARDED_BY(mu_);  // null until the file is read
};

Status SkipgramShape(ShapeScope& s) {
  s.set_output(0, PartialShape{PartialShape::kUnknown});
  s.set_output(1, PartialShape{PartialShape::kUnknown});
  for (int i : {2, 3, 4}) s.set_output(i, PartialShape::Scalar());
  for (int i : {5, 6}) s.set_output(i, PartialShape{s.attr<int64_t>("batch_size")});
  return OkStatus();
}

OP(Skipgram) {
  return {
      .doc = "Makes batches of pairs of words that are close to each other in a text file.",
      .outputs = {{"vocab_word", "string"},
                  {"vocab_freq", "int32"},
                  {"words_per_epoch", "int64"},
                  {"current_epoch", "int32"},
                  {"total_words_processed", "int64"},
                  {"examples", "int32"},
                  {"labels", "int32"}},
      .attrs = {{"filename", Strings{}},
                {"batch_size", Ints{.min = 0}},
                {"window_size", Ints{.min = 1}, 5},
                {"min_count", 5},
                {"subsample", 0.001f}},
      .shape = SkipgramShape,
      .gradient = NoGradient,
      .stateful = true,
      .untestable_alone = "reads a file: kernels/data has its tests",
  };
}
KERNEL_ANY_TYPE(Skipgram, SkipgramKernel);

}  // namespace
}  // namespace penstock
