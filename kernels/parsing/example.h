// SPDX-License-Identifier: Apache-2.0
//
// ExampleRecord and SequenceRecord: training records (tensorflow.Example,
// tensorflow.SequenceExample), found in their bytes; Feature: the values of one of their features.
//
// Nothing is copied but numbers: records and the strings of features are views of the bytes they
// were parsed from, which must outlive them. Features are decoded when somebody asks for them: what
// nobody asks for may hold anything. Values. Immutable: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

struct Feature {
  DType dtype = DType::kInvalid;  // kFloat, kInt64, kString; kInvalid: the feature is empty
  absl::InlinedVector<float, 2> floats;
  absl::InlinedVector<int64_t, 1> ints;
  absl::InlinedVector<string_view, 1> strings;

  int64_t size() const {
    return static_cast<int64_t>(floats.size() + ints.size() + strings.size());
  }
  // Copies the values into `to`, of the feature's dtype, from element `at` on.
  void CopyTo(Tensor* to, int64_t at) const;
};

// A map of serialized messages. Of equal keys the last one counts.
class SerializedMap {
 public:
  // Adds the entries of a message whose field 1 is a map. False where `bytes` are no such message.
  bool Add(string_view bytes);
  std::optional<string_view> Find(string_view key) const;

 private:
  absl::InlinedVector<std::pair<string_view, string_view>, 4> entries_;
};

class ExampleRecord {
 public:
  // InvalidArgument where `bytes` are no such record.
  static StatusOr<ExampleRecord> Parse(string_view bytes);
  // The same from protobuf's JSON.
  static StatusOr<std::string> BytesOfJson(string_view json);

  // Nothing where the record has no such feature, or one without a kind. InvalidArgument where its
  // bytes are no feature.
  StatusOr<std::optional<Feature>> Find(string_view key) const;

 private:
  SerializedMap features_;
  friend class SequenceRecord;
};

class SequenceRecord {
 public:
  static StatusOr<SequenceRecord> Parse(string_view bytes);

  const ExampleRecord& context() const { return context_; }
  // The steps of one list; those without a kind are there, as empty Features.
  StatusOr<std::optional<std::vector<Feature>>> FindList(string_view key) const;

 private:
  ExampleRecord context_;
  SerializedMap lists_;
};

}  // namespace penstock
