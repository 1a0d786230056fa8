// SPDX-License-Identifier: Apache-2.0
#include "client/summary/summaries.h"

#include "client/ops/line_scope.h"

namespace penstock::client {

Output Summaries::Tag(const std::string& tag) {
  if (tag.empty()) program_.Fail(InvalidArgument("a summary has an empty tag"));
  if (!tags_.insert(tag).second) {
    program_.Fail(InvalidArgument("two summaries have the tag '", tag, "': give each its own"));
  }
  return Constant(program_, Tensor::Scalar<std::string>(tag));
}

void Summaries::AddScalar(const std::string& tag, Output value, SourceLine line) {
  const CallerLine source(program_, line);
  summaries_.push_back(Call("ScalarSummary", {Tag(tag), value}));
}

void Summaries::AddHistogram(const std::string& tag, Output values, SourceLine line) {
  const CallerLine source(program_, line);
  summaries_.push_back(Call("HistogramSummary", {Tag(tag), values}));
}

void Summaries::AddImages(const std::string& tag, Output images, int64_t max_images,
                          SourceLine line) {
  const CallerLine source(program_, line);
  summaries_.push_back(Call("ImageSummary", {Tag(tag), images}, {{"max_images", max_images}}));
}

Output Summaries::Merged(SourceLine line) {
  const CallerLine source(program_, line);
  return summaries_.empty() ? Output() : Call("MergeSummary", {summaries_});
}

}  // namespace penstock::client
