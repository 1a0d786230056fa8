// SPDX-License-Identifier: Apache-2.0
//
// ParseSequencesKernel: the base of the ops that parse SequenceExamples: contexts and feature lists
// of a batch of records, or of one record.
#pragma once

#include <string>
#include <vector>

#include "core/op/kernel.h"
#include "kernels/parsing/features.h"

namespace penstock {

// The feature lists to parse. The keys are as in FeatureRequest.
struct FeatureListRequest {
  std::vector<std::string> sparse_keys, dense_keys, ragged_keys;
  std::vector<DType> sparse_types, dense_types, ragged_types;
  std::vector<PartialShape> dense_shapes;
  std::vector<bool> may_miss;  // for each of dense_keys: whether a list may be missing
  bool lengths = true;         // the lengths of dense lists are outputs, too
};

class ParseSequencesKernel : public Kernel {
 public:
  // Reads all attributes except keys and ragged types.
  Status Init(const KernelInit& node) override;

 protected:
  // The index of the input with the records' names, and that of the first default value for the
  // context's dense features.
  struct Inputs {
    int names, defaults;
  };
  // Parses the records. `context` and `lists` are context_ and lists_ with their keys filled in.
  // InvalidArgument if the keys do not fit the attributes.
  Status Parse(FeatureRequest context, FeatureListRequest lists, const Inputs& inputs,
               KernelContext& ctx) const;

  size_t num_context_dense() const { return context_dense_types_.size(); }

  FeatureRequest context_;    // without keys
  FeatureListRequest lists_;  // without keys

 private:
  std::vector<DType> context_dense_types_;
  std::vector<PartialShape> context_dense_shapes_;
};

template <class T, class U>
Status CheckSameSize(const char* a, const std::vector<T>& as, const char* b,
                     const std::vector<U>& bs) {
  if (as.size() == bs.size()) return OkStatus();
  return InvalidArgument("there are ", as.size(), " ", a, " for ", bs.size(), " ", b);
}

}  // namespace penstock
