// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/util/json_util.h>

#include "kernels/parsing/example.h"
#include "proto/tensorflow/example.pb.h"

namespace penstock {
namespace {

Feature ViewOf(const tensorflow::Feature& from) {
  Feature feature;
  switch (from.kind_case()) {
    case tensorflow::Feature::kFloatList:
      feature.dtype = DType::kFloat;
      feature.floats = from.float_list().value();
      break;
    case tensorflow::Feature::kInt64List:
      feature.dtype = DType::kInt64;
      feature.ints =
          absl::MakeConstSpan(from.int64_list().value().data(), from.int64_list().value_size());
      break;
    case tensorflow::Feature::kBytesList:
      feature.dtype = DType::kString;
      for (const std::string& value : from.bytes_list().value()) feature.strings.push_back(value);
      break;
    case tensorflow::Feature::KIND_NOT_SET:
      break;
  }
  return feature;
}

template <class Record>
StatusOr<std::shared_ptr<Record>> ParseRecord(string_view bytes) {
  auto record = std::make_shared<Record>();
  // ParseFromArray takes an int: longer records are not possible in protobuf.
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !record->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("the ", bytes.size(), " bytes are no ", record->GetTypeName());
  }
  return record;
}

}  // namespace

void Feature::CopyTo(Tensor* to, int64_t at) const {
  switch (dtype) {
    case DType::kFloat:
      std::copy(floats.begin(), floats.end(), to->mutable_data<float>() + at);
      break;
    case DType::kInt64:
      std::copy(ints.begin(), ints.end(), to->mutable_data<int64_t>() + at);
      break;
    default:
      for (const string_view value : strings) {
        to->mutable_data<std::string>()[at++].assign(value.data(), value.size());
      }
  }
}

StatusOr<ExampleRecord> ExampleRecord::Parse(string_view bytes) {
  ASSIGN_OR_RETURN(const auto record, ParseRecord<tensorflow::Example>(bytes));
  ExampleRecord example;
  example.features_ = &record->features();
  example.record_ = record;
  return example;
}

StatusOr<std::string> ExampleRecord::BytesOfJson(string_view json) {
  tensorflow::Example record;
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &record);
  if (!status.ok()) return InvalidArgument(status.message().as_string());
  return record.SerializeAsString();
}

std::optional<Feature> ExampleRecord::Find(const std::string& key) const {
  const auto& features = static_cast<const tensorflow::Features*>(features_)->feature();
  const auto found = features.find(key);
  if (found == features.end() || found->second.kind_case() == tensorflow::Feature::KIND_NOT_SET) {
    return std::nullopt;
  }
  return ViewOf(found->second);
}

StatusOr<SequenceRecord> SequenceRecord::Parse(string_view bytes) {
  ASSIGN_OR_RETURN(const auto record, ParseRecord<tensorflow::SequenceExample>(bytes));
  SequenceRecord example;
  example.context_.features_ = &record->context();
  example.context_.record_ = record;
  example.lists_ = &record->feature_lists();
  return example;
}

std::optional<std::vector<Feature>> SequenceRecord::FindList(const std::string& key) const {
  const auto& lists = static_cast<const tensorflow::FeatureLists*>(lists_)->feature_list();
  const auto found = lists.find(key);
  if (found == lists.end()) return std::nullopt;
  std::vector<Feature> steps;
  for (const tensorflow::Feature& step : found->second.feature()) steps.push_back(ViewOf(step));
  return steps;
}

}  // namespace penstock
