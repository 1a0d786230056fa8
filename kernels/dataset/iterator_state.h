// SPDX-License-Identifier: Apache-2.0
//
// The state of an iterator as a list of tensors. Each iterator writes and reads its own section
// before those of its inputs. A section begins with a label, so that an iterator refuses the state
// of another pipeline.
//
// Single-threaded.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock {

struct ElementSpec;  // dataset.h

class StateWriter {
 public:
  void Label(const char* label) { Text(label); }
  void Int(int64_t value) { values_.push_back(Tensor::Scalar<int64_t>(value)); }
  void Text(const std::string& value) { values_.push_back(Tensor::Scalar<std::string>(value)); }
  void Value(const Tensor& value) { values_.push_back(value); }
  void Values(const std::vector<Tensor>& values) {
    Int(static_cast<int64_t>(values.size()));
    for (const Tensor& value : values) Value(value);
  }
  // Writes a status, such as an error that the restored iterator has to return.
  void Error(const Status& status) {
    Int(static_cast<int64_t>(status.code()));
    Text(std::string(status.message()));
  }
  std::vector<Tensor> Take() { return std::move(values_); }

 private:
  std::vector<Tensor> values_;
};

// Reads a state, which may come from an untrusted source. InvalidArgument names the value that was
// expected.
class StateReader {
 public:
  explicit StateReader(std::vector<Tensor> values) : values_(std::move(values)) {}
  // The default maximum of a count. Adding to a count that was read does not overflow.
  static constexpr int64_t kCountMax = int64_t{1} << 62;

  Status Label(const char* label);
  // Reads a number that is at least `min` and at most `max`.
  StatusOr<int64_t> Int(int64_t min = 0, int64_t max = kCountMax);
  // Reads a number that may be any, such as a seed or a key.
  StatusOr<int64_t> AnyInt() { return Int(INT64_MIN, INT64_MAX); }
  StatusOr<std::string> Text();
  StatusOr<Tensor> Value();
  StatusOr<std::vector<Tensor>> Values();
  // Reads an element. InvalidArgument unless its components have the types of `spec`.
  StatusOr<std::vector<Tensor>> ElementOf(const ElementSpec& spec);
  // Reads the status that was written, which may be OK, into `*status`. Returns an error if it
  // cannot be read.
  Status Error(Status* status);
  // Reads the result of a call of GetNext: a status and, if the status is OK, an element of `spec`.
  Status Result(const ElementSpec& spec, Status* status, std::vector<Tensor>* element);
  Status AtEnd() const;

 private:
  const std::vector<Tensor> values_;
  size_t next_ = 0;
};

}  // namespace penstock
