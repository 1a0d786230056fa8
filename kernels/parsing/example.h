// SPDX-License-Identifier: Apache-2.0
//
// ExampleRecord and SequenceRecord: training records (tensorflow.Example,
// tensorflow.SequenceExample), parsed; Feature: a view of the values of one of their features.
//
// Values move, views live as long as what they are views of. Immutable: thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

struct Feature {
  DType dtype = DType::kInvalid;  // kFloat, kInt64, kString; kInvalid: the feature is empty
  absl::Span<const float> floats;
  absl::Span<const int64_t> ints;
  std::vector<string_view> strings;

  int64_t size() const {
    return static_cast<int64_t>(floats.size() + ints.size() + strings.size());
  }
  // Copies the values into `to`, of the feature's dtype, from element `at` on.
  void CopyTo(Tensor* to, int64_t at) const;
};

class ExampleRecord {
 public:
  // InvalidArgument where `bytes` are no such record.
  static StatusOr<ExampleRecord> Parse(string_view bytes);
  // The same from protobuf's JSON.
  static StatusOr<std::string> BytesOfJson(string_view json);

  // Nothing where the record has no such feature, or one without a kind.
  std::optional<Feature> Find(const std::string& key) const;

 private:
  std::shared_ptr<const void> record_;  // owns features_
  const void* features_ = nullptr;      // tensorflow::Features
  friend class SequenceRecord;
};

class SequenceRecord {
 public:
  static StatusOr<SequenceRecord> Parse(string_view bytes);

  const ExampleRecord& context() const { return context_; }
  // The steps of one list; those without a kind are there, as empty Features.
  std::optional<std::vector<Feature>> FindList(const std::string& key) const;

 private:
  ExampleRecord context_;
  const void* lists_ = nullptr;  // tensorflow::FeatureLists, owned by context_
};

}  // namespace penstock
