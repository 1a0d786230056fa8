// SPDX-License-Identifier: Apache-2.0
//
// SummaryBuilder: collects values with tags and serializes them as a Summary message of an event
// file. Single-threaded.
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
  // Adds a tensor under the name of the node that made it.
  void AddNodeTensor(const std::string& node, const Tensor& tensor);
  // Adds a tensor. `metadata` is a serialized SummaryMetadata, or null for none. If it is
  // malformed, the fields that can be parsed are kept.
  void AddTensor(const std::string& tag, const Tensor& tensor, const std::string* metadata);
  // Adds all values of a serialized Summary. InvalidArgument if it is malformed.
  Status Add(const std::string& serialized);

  // Checks the tags. InvalidArgument if two values have the same tag.
  Status CheckTagsDiffer() const;
  std::string Serialize() const;

 private:
  std::unique_ptr<tensorflow::Summary> summary_;
};

}  // namespace penstock
