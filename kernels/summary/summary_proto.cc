// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <utility>

#include "kernels/summary/summary.h"
#include "proto/tensorflow/event.pb.h"

namespace penstock {
namespace {

// Encodes numbers as raw bytes, and strings in string_val, so that the TensorProto has the same
// bytes as TensorFlow's.
void FillTensor(const Tensor& tensor, tensorflow::TensorProto* proto) {
  proto->set_dtype(static_cast<tensorflow::DataType>(Number(tensor.dtype())));
  proto->mutable_tensor_shape();
  for (const int64_t dim : tensor.shape().dims()) {
    proto->mutable_tensor_shape()->add_dim()->set_size(dim);
  }
  if (tensor.dtype() == DType::kString) {
    for (const std::string& s : tensor.flat<std::string>()) proto->add_string_val(s);
  } else {
    proto->set_tensor_content(tensor.raw_data(), tensor.bytes());
  }
}

}  // namespace

SummaryBuilder::SummaryBuilder() : summary_(std::make_unique<tensorflow::Summary>()) {}
SummaryBuilder::~SummaryBuilder() = default;

void SummaryBuilder::AddScalar(const std::string& tag, float value) {
  tensorflow::Summary::Value* const v = summary_->add_value();
  v->set_tag(tag);
  v->set_simple_value(value);
}

void SummaryBuilder::AddHistogram(const std::string& tag, const Histogram& histogram) {
  tensorflow::Summary::Value* const v = summary_->add_value();
  v->set_tag(tag);
  tensorflow::HistogramProto* const proto = v->mutable_histo();
  proto->set_min(histogram.min());
  proto->set_max(histogram.max());
  proto->set_num(histogram.count());
  proto->set_sum(histogram.sum());
  proto->set_sum_squares(histogram.sum_squares());
  for (const Histogram::Bucket& bucket : histogram.Buckets()) {
    proto->add_bucket_limit(bucket.limit);
    proto->add_bucket(bucket.count);
  }
}

void SummaryBuilder::AddImage(const std::string& tag, Image image) {
  tensorflow::Summary::Value* const v = summary_->add_value();
  v->set_tag(tag);
  v->mutable_image()->set_height(image.height);
  v->mutable_image()->set_width(image.width);
  v->mutable_image()->set_colorspace(image.channels);
  v->mutable_image()->set_encoded_image_string(std::move(image.png));
}

void SummaryBuilder::AddAudio(const std::string& tag, Audio audio) {
  tensorflow::Summary::Value* const v = summary_->add_value();
  v->set_tag(tag);
  v->mutable_audio()->set_sample_rate(audio.sample_rate);
  v->mutable_audio()->set_num_channels(audio.channels);
  v->mutable_audio()->set_length_frames(audio.frames);
  v->mutable_audio()->set_encoded_audio_string(std::move(audio.wav));
  v->mutable_audio()->set_content_type("audio/wav");
}

void SummaryBuilder::AddNodeTensor(const std::string& node, const Tensor& tensor) {
  tensorflow::Summary::Value* const v = summary_->add_value();
  v->set_node_name(node);
  FillTensor(tensor, v->mutable_tensor());
}

void SummaryBuilder::AddTensor(const std::string& tag, const Tensor& tensor,
                               const std::string* metadata) {
  tensorflow::Summary::Value* const v = summary_->add_value();
  v->set_tag(tag);
  FillTensor(tensor, v->mutable_tensor());
  if (metadata != nullptr) (void)v->mutable_metadata()->ParseFromString(*metadata);
}

Status SummaryBuilder::Add(const std::string& serialized) {
  tensorflow::Summary summary;
  if (!summary.ParseFromString(serialized)) {
    return InvalidArgument("Could not parse one of the summary inputs");
  }
  summary_->MergeFrom(summary);
  return OkStatus();
}

Status SummaryBuilder::CheckTagsDiffer() const {
  std::set<std::string> tags;
  for (const tensorflow::Summary::Value& v : summary_->value()) {
    if (v.tag().empty() || tags.insert(v.tag()).second) continue;
    return InvalidArgument("Duplicate tag ", v.tag(), " found in summary inputs");
  }
  return OkStatus();
}

std::string SummaryBuilder::Serialize() const { return summary_->SerializeAsString(); }

}  // namespace penstock
