// SPDX-License-Identifier: Apache-2.0
//
// Shared by FusedBatchNorm and its gradient. Both ops have three versions, which allow different
// types and formats; the third has one more reserve output, which only GPUs use.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/op/kernel.h"
#include "core/op/op_def.h"
#include "core/op/shape_scope.h"
#include "kernels/nn/per_channel.h"

namespace penstock {

class BatchNormKernel : public Kernel {
 protected:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("epsilon", &epsilon_));
    RETURN_IF_ERROR(node.Attr("data_format", &format_));
    return node.Attr("is_training", &training_);
  }

  StatusOr<ChannelSplit> ImageChannels(const Tensor& x) const {
    const int rank = static_cast<int>(format_.size());
    // A two-dimensional format also serves volumes, with the depth folded into the height.
    if (x.rank() != rank) {
      return InvalidArgument("x must have ", rank, " dimensions (", format_, "), has shape ",
                             x.shape().ToString());
    }
    return SplitAtChannels(x.shape(), format_);
  }

  static Status ExpectChannels(const char* what, const Tensor& t, int64_t channels) {
    if (t.rank() == 1 && t.dim(0) == channels) return OkStatus();
    return InvalidArgument(what, " must have shape [", channels, "], one number per channel, has ",
                           t.shape().ToString());
  }

  // Returns 1 / sqrt(variance + epsilon) for each channel.
  std::vector<float> InverseDeviation(const float* variance, int64_t n) const {
    std::vector<float> result(n);
    for (int64_t c = 0; c < n; ++c) result[c] = 1 / std::sqrt(variance[c] + epsilon_);
    return result;
  }

  float epsilon_ = 0;
  std::string format_;
  bool training_ = true;
};

inline StatusOr<PartialShape> ImageShape(ShapeScope& s, int input) {
  return s.WithRank(input, static_cast<int>(s.attr<std::string>("data_format").size()));
}

// Shape function: returns [channels], as far as it is known from `image` and the vectors in inputs
// `first` to `last`.
inline StatusOr<PartialShape> ChannelsShape(ShapeScope& s, const PartialShape& image, int first,
                                            int last) {
  PartialShape channels = PartialShape::UnknownOfRank(1);
  if (image.known_rank()) {
    channels.set_dim(0, image.dim(ChannelAxis(s.attr<std::string>("data_format"), image.rank())));
  }
  for (int i = first; i <= last; ++i) {
    ASSIGN_OR_RETURN(channels, channels.Merge(s.input(i)));
  }
  return channels;
}

inline const DTypes kBatchNormOldInputTypes = {DType::kFloat};
inline const DTypes kBatchNormInputTypes = {DType::kHalf, DType::kBfloat16, DType::kFloat};

inline std::vector<AttrDef> BatchNormAttrs(bool grad, bool volumes) {
  OneOf formats{{"NHWC", "NCHW"}};
  if (volumes) formats.allowed = {"NHWC", "NCHW", "NDHWC", "NCDHW"};
  std::vector<AttrDef> attrs = {
      {"epsilon", 0.0001f}, {"data_format", formats, "NHWC"}, {"is_training", true}};
  if (!grad) attrs.push_back({"exponential_avg_factor", 1.0f});
  return attrs;
}

}  // namespace penstock
