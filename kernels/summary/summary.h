// SPDX-License-Identifier: Apache-2.0
//
// SummaryBuilder: values under tags, serialized as the Summary message that event files hold.
// Single-threaded.
#pragma once

#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "kernels/summary/histogram.h"

namespace tensorflow {
class Summary;
}  // namespace tensorflow

namespace penstock {

class SummaryBuilder {
 public:
  struct Image {
    int height, width, channels;
    std::string png;
  };
  struct Audio {
    float sample_rate;
    int64_t channels, frames;
    std::string wav;
  };

  SummaryBuilder();
  ~SummaryBuilder();
  void AddScalar(const std::string& tag, float value);
  void AddHistogram(const std::string& tag, const Histogram& histogram);
  void AddImage(const std::string& tag, Image image);
  void AddAudio(const std::string& tag, Audio audio);
  // Under the name of the node that made it.
  void AddNodeTensor(const std::string& node, const Tensor& tensor);
  // `metadata` is a serialized SummaryMetadata; of what is none, as much as can be read is kept.
  void AddTensor(const std::string& tag, const Tensor& tensor, const std::string& metadata);
  // Everything in a serialized Summary. InvalidArgument where it is none.
  Status Add(const std::string& serialized);

  // InvalidArgument where two values have one tag.
  Status CheckTagsDiffer() const;
  std::string Serialize() const;

 private:
  std::unique_ptr<tensorflow::Summary> summary_;
};

}  // namespace penstock
