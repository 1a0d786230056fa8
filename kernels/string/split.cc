// SPDX-License-Identifier: Apache-2.0
//
// StringSplit and StringSplitV2: split each string into words. The words of a string form a row of
// a sparse tensor.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/string/strings.h"

namespace penstock {
namespace {

using Words = std::vector<string_view>;

// Writes outputs 0 to 2: places, words, and the shape [number of strings, greatest number of
// words].
Status WriteWords(KernelContext& ctx, const std::vector<Words>& rows) {
  int64_t n = 0, most = 0;
  for (const Words& row : rows) {
    n += static_cast<int64_t>(row.size());
    most = std::max(most, static_cast<int64_t>(row.size()));
  }
  Tensor *indices, *values;
  RETURN_IF_ERROR(ctx.Allocate(0, Shape{n, 2}, &indices));
  RETURN_IF_ERROR(ctx.Allocate(1, Shape{n}, &values));
  int64_t at = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t k = 0; k < rows[r].size(); ++k, ++at) {
      indices->mutable_data<int64_t>()[2 * at] = static_cast<int64_t>(r);
      indices->mutable_data<int64_t>()[2 * at + 1] = static_cast<int64_t>(k);
      values->mutable_data<std::string>()[at] = std::string(rows[r][k]);
    }
  }
  ctx.SetOutput(2, Tensor::Vector<int64_t>({static_cast<int64_t>(rows.size()), most}));
  return OkStatus();
}

// Splits at every character of `delimiters`; if there are none, splits into characters. An empty
// string has no words.
Words SplitAtAny(string_view text, const std::string& delimiters, bool skip_empty) {
  Words words;
  if (delimiters.empty()) {
    for (size_t i = 0; i < text.size(); ++i) words.push_back(text.substr(i, 1));
    return words;
  }
  if (text.empty()) return words;
  while (true) {
    const size_t end = text.find_first_of(delimiters);
    const string_view word = text.substr(0, end);
    if (!word.empty() || !skip_empty) words.push_back(word);
    if (end == string_view::npos) return words;
    text.remove_prefix(end + 1);
  }
}

// Splits like Python's str.split: at `separator`, or, if that is empty, at runs of white space; at
// most `most` times if `most` is not negative.
Words SplitAt(string_view text, const std::string& separator, int64_t most) {
  if (most == 0) return {text};
  Words words;
  if (separator.empty()) {
    text = absl::StripLeadingAsciiWhitespace(text);
    while (!text.empty()) {
      const auto space = std::find_if(text.begin(), text.end(), absl::ascii_isspace);
      words.push_back(text.substr(0, space - text.begin()));
      text = absl::StripLeadingAsciiWhitespace(text.substr(words.back().size()));
      if (--most != 0) continue;
      // As in TensorFlow, the rest of the text after `most` splits is a word, even if the rest is
      // empty.
      words.push_back(text);
      return words;
    }
    return words;
  }
  while (true) {
    const size_t end = text.find(separator);
    if (end == string_view::npos || most-- == 0) {
      words.push_back(text);
      return words;
    }
    words.push_back(text.substr(0, end));
    text.remove_prefix(end + separator.size());
  }
}

template <class Split>
Status SplitEach(KernelContext& ctx, Split split) {
  const Tensor& input = ctx.input(0);
  if (input.rank() != 1) {
    return InvalidArgument("input must be a vector, got shape: ", input.shape().ToString());
  }
  std::vector<Words> rows;
  for (const std::string& text : input.flat<std::string>()) rows.push_back(split(text));
  return WriteWords(ctx, rows);
}

class StringSplitKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("skip_empty", &skip_empty_); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const std::string delimiter, StringScalar(ctx, 1, "delimiter"));
    return SplitEach(ctx,
                     [&](string_view text) { return SplitAtAny(text, delimiter, skip_empty_); });
  }

 private:
  bool skip_empty_ = true;
};

class StringSplitV2Kernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("maxsplit", &most_));
    most_ = std::max<int64_t>(most_, -1);  // negative: all
    return OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const std::string separator, StringScalar(ctx, 1, "sep"));
    return SplitEach(ctx, [&](string_view text) { return SplitAt(text, separator, most_); });
  }

 private:
  int64_t most_ = -1;
};

Status SplitShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 1).status());
  RETURN_IF_ERROR(s.WithRank(1, 0).status());
  s.set_output(0, PartialShape{-1, 2});
  s.set_output(1, PartialShape{-1});
  s.set_output(2, PartialShape{2});
  return OkStatus();
}

}  // namespace

OP(StringSplit) {
  return {
      .doc =
          "Splits each string at every character of `delimiter`, or into characters if it "
          "is empty. The words of a string are a row of a sparse tensor.",
      .inputs = {{"input", "string"}, {"delimiter", "string"}},
      .outputs = {{"indices", "int64"}, {"values", "string"}, {"shape", "int64"}},
      .attrs = {{"skip_empty", AttrValue(true)}},
      .shape = SplitShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3}}}, {{{}}}}}},
  };
}
KERNEL_ANY_TYPE(StringSplit, StringSplitKernel);

OP(StringSplitV2) {
  return {
      .doc =
          "Splits each string as Python's str.split does. The words of a string are a row "
          "of a sparse tensor.",
      .inputs = {{"input", "string"}, {"sep", "string"}},
      .outputs = {{"indices", "int64"}, {"values", "string"}, {"shape", "int64"}},
      .attrs = {{"maxsplit", -1}},
      .shape = SplitShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{3}}}, {{{}}}}}},
  };
}
KERNEL_ANY_TYPE(StringSplitV2, StringSplitV2Kernel);

}  // namespace penstock
