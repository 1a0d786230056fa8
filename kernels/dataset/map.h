// SPDX-License-Identifier: Apache-2.0
//
// Code shared by ops that map elements by a function.
#pragma once

#include "core/base/status.h"
#include "kernels/dataset/dataset_kernel.h"

namespace penstock {

// Base of the kernels of ops with the attributes f and preserve_cardinality.
class MappingKernel : public DatasetKernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(function_.Init(node, "f", "Targuments"));
    RETURN_IF_ERROR(node.Attr("preserve_cardinality", &keeps_count_));
    return DatasetKernel::Init(node);
  }

 protected:
  const FunctionAttr& mapping() const { return function_; }
  bool keeps_count() const { return keeps_count_; }

 private:
  FunctionAttr function_;
  bool keeps_count_ = false;
};

// Converts the status of a map function to the status of GetNext: OutOfRange sets `*end`. But if
// the dataset has promised as many elements as its input (preserve_cardinality), OutOfRange becomes
// an error with TensorFlow's text.
inline Status MapEnded(Status status, bool preserve_cardinality, bool* end) {
  *end = false;
  if (status.code() != StatusCode::kOutOfRange) return status;
  if (preserve_cardinality) {
    return InvalidArgument("Function invocation produced OutOfRangeError: ", status.message());
  }
  *end = true;
  return OkStatus();
}

}  // namespace penstock
