// SPDX-License-Identifier: Apache-2.0
//
// StringNGrams: joins runs of adjacent strings of each row, in several widths, with padding at both
// ends.
#include <algorithm>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"

namespace penstock {
namespace {

using Words = absl::Span<const std::string>;

// The maximum number of words in all n-grams together. Most programs request n-grams of a few
// words.
constexpr int64_t kWordsMax = int64_t{1} << 28;

class NGramsKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("separator", &separator_));
    RETURN_IF_ERROR(node.Attr("left_pad", &left_));
    RETURN_IF_ERROR(node.Attr("right_pad", &right_));
    RETURN_IF_ERROR(node.Attr("pad_width", &padding_));
    RETURN_IF_ERROR(node.Attr("preserve_short_sequences", &keep_short_));
    RETURN_IF_ERROR(node.Attr("ngram_widths", &widths_));
    for (const int64_t width : widths_) {
      if (width < 1) return InvalidArgument("ngram_widths must contain positive values");
      if (width >= kWordsMax) return InvalidArgument("ngram_widths holds ", width);
    }
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& data = ctx.input(0);
    if (data.rank() != 1) {
      return InvalidArgument("data must be a vector, got shape: ", data.shape().ToString());
    }
    ASSIGN_OR_RETURN(const Dims splits, IntVector(ctx.input(1), "data_splits"));
    RETURN_IF_ERROR(CheckSplits(splits, data.dim(0)));
    ASSIGN_OR_RETURN(const int64_t total, WriteSplits(ctx, splits));
    Tensor* grams;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape{total}, &grams));
    std::string* to = grams->mutable_data<std::string>();
    for (size_t row = 1; row < splits.size(); ++row) {
      to =
          Row(data.flat<std::string>().subspan(splits[row - 1], splits[row] - splits[row - 1]), to);
    }
    return OkStatus();
  }

 private:
  // Returns the number of padding words at each end of a row.
  int64_t PadWidth(int64_t width) const {
    return padding_ < 0 ? width - 1 : std::min(padding_, width - 1);
  }
  int64_t Count(int64_t words, int64_t width) const {
    return std::max<int64_t>(0, words + 2 * PadWidth(width) - width + 1);
  }
  // Returns true if a row is too short for every width, and is kept as one n-gram.
  bool IsShort(int64_t words) const {
    return keep_short_ && words > 0 &&
           std::all_of(widths_.begin(), widths_.end(),
                       [&](int64_t width) { return Count(words, width) == 0; });
  }

  static Status CheckSplits(const Dims& splits, int64_t words) {
    if (splits.empty()) {
      if (words == 0) return OkStatus();
      return InvalidArgument("data_splits must not be empty, there are ", words, " strings");
    }
    if (splits[0] != 0) return InvalidArgument("First split value must be 0, got ", splits[0]);
    if (!std::is_sorted(splits.begin(), splits.end())) {
      return InvalidArgument("Invalid split value: splits must be sorted");
    }
    if (splits.back() == words) return OkStatus();
    return InvalidArgument("Last split value must be data size. Expected ", words, ", got ",
                           splits.back());
  }

  // Writes output 1, the splits; returns the number of n-grams. ResourceExhausted if the n-grams
  // have more than kWordsMax words.
  StatusOr<int64_t> WriteSplits(KernelContext& ctx, const Dims& splits) const {
    int64_t total = 0, words_of_all = 0;
    Dims ends;
    for (size_t row = 0; row < splits.size(); ++row) {
      const int64_t words = row == 0 ? 0 : splits[row] - splits[row - 1];
      for (size_t k = 0; row > 0 && k < widths_.size(); ++k) {
        const int64_t count = Count(words, widths_[k]);
        if (count > 0 && count > (kWordsMax - words_of_all) / widths_[k]) {
          return ResourceExhausted("there are more than ", kWordsMax, " words in the n-grams");
        }
        words_of_all += count * widths_[k];
        total += count;
      }
      if (row > 0 && !widths_.empty() && IsShort(words)) ++total;
      ends.push_back(total);
    }
    Tensor* out;
    RETURN_IF_ERROR(ctx.Allocate(1, Shape{static_cast<int64_t>(ends.size())}, &out));
    if (out->dtype() == DType::kInt64) {
      std::copy(ends.begin(), ends.end(), out->mutable_data<int64_t>());
    } else {
      std::copy(ends.begin(), ends.end(), out->mutable_data<int32_t>());
    }
    return total;
  }

  // Writes the n-grams of a row; returns the position after the last one.
  std::string* Row(Words words, std::string* to) const {
    const auto size = static_cast<int64_t>(words.size());
    for (const int64_t width : widths_) {
      const int64_t padding = PadWidth(width), count = Count(size, width);
      for (int64_t i = 0; i < count; ++i) *to++ = Gram(words, i - padding, width);
    }
    if (widths_.empty() || !IsShort(size)) return to;
    // The row is too short for the smallest width, even with padding: adds one n-gram of the whole
    // row.
    *to++ = Gram(words, -padding_, size + 2 * padding_);
    return to;
  }

  // Joins `width` words from word `first` on; positions before and after the row are padding.
  std::string Gram(Words words, int64_t first, int64_t width) const {
    std::string gram;
    for (int64_t i = first; i < first + width; ++i) {
      if (i > first) gram += separator_;
      gram += i < 0 ? left_ : i >= static_cast<int64_t>(words.size()) ? right_ : words[i];
    }
    return gram;
  }

  std::string separator_, left_, right_;
  int64_t padding_ = 0;
  bool keep_short_ = false;
  std::vector<int64_t> widths_;
};

Status NGramsShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 1).status());
  ASSIGN_OR_RETURN(const PartialShape splits, s.WithRank(1, 1));
  s.set_output(0, PartialShape{PartialShape::kUnknown});
  s.set_output(1, splits);
  return OkStatus();
}

}  // namespace

OP(StringNGrams) {
  return {
      .doc =
          "Returns the n-grams within each row of a ragged tensor of strings, for each n in "
          "ngram_widths, joined by `separator`. Each row is padded with pad_width words at "
          "both ends (-1: as many as needed).",
      .inputs = {{"data", "string"}, {"data_splits", "Tsplits"}},
      .outputs = {{"ngrams", "string"}, {"ngrams_splits", "Tsplits"}},
      .types = {{"Tsplits", kIndex, DType::kInt64}},
      .attrs = {{"separator", Strings{}},
                {"ngram_widths", IntList{}},
                {"left_pad", Strings{}},
                {"right_pad", Strings{}},
                {"pad_width", Ints{}},
                {"preserve_short_sequences", Bools{}}},
      .shape = NGramsShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{5}}}, {{{3}, {0, 3, 5}}}},
                    .attrs = {{"separator", " "},
                              {"ngram_widths", std::vector<int64_t>{2, 3}},
                              {"left_pad", "<"},
                              {"right_pad", ">"},
                              {"pad_width", 1},
                              {"preserve_short_sequences", false}}}},
  };
}
KERNEL_ANY_TYPE(StringNGrams, NGramsKernel);

}  // namespace penstock
