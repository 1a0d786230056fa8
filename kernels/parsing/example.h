// SPDX-License-Identifier: Apache-2.0
//
// ExampleRecord and SequenceRecord: serialized training records (tensorflow.Example,
// tensorflow.SequenceExample); Feature: the values of one of their features.
//
// Only numbers are copied: records and the strings of features are views of the serialized bytes,
// which must outlive them. Features are decoded on request, so features that are not requested may
// be malformed. Records are immutable value types, and so thread-safe.
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
  // Copies the values into `to`, from element `at` on. `to` has the feature's dtype.
  void CopyTo(Tensor* to, int64_t at) const;
};

// A map of serialized messages. If a key occurs several times, the last entry counts.
class SerializedMap {
 public:
  // Adds the entries of a message whose field 1 is a map. Returns false if `bytes` is not such a
  // message.
  bool Add(string_view bytes);
  std::optional<string_view> Find(string_view key) const;

 private:
  absl::InlinedVector<std::pair<string_view, string_view>, 4> entries_;
};

class ExampleRecord {
 public:
  // Finds the features of a record, without decoding them (Find decodes).
  // InvalidArgument if `bytes` is not an Example.
  static StatusOr<ExampleRecord> Parse(string_view bytes);
  // Returns the bytes of a record that is given as protobuf's JSON. InvalidArgument if it is
  // malformed.
  static StatusOr<std::string> BytesOfJson(string_view json);

  // Returns the feature `key`. Returns nullopt if the record has no such feature, or if the feature
  // has no list of values. InvalidArgument if the feature's bytes are malformed.
  StatusOr<std::optional<Feature>> Find(string_view key) const;

 private:
  SerializedMap features_;
  friend class SequenceRecord;
};

class SequenceRecord {
 public:
  static StatusOr<SequenceRecord> Parse(string_view bytes);

  const ExampleRecord& context() const { return context_; }
  // Returns the steps of feature list `key`, or nullopt if the record has no such list. A step
  // without a list of values is an empty Feature. InvalidArgument if the list's bytes are
  // malformed.
  StatusOr<std::optional<std::vector<Feature>>> FindList(string_view key) const;

 private:
  ExampleRecord context_;
  SerializedMap lists_;
};

}  // namespace penstock
