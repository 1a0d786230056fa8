// SPDX-License-Identifier: Apache-2.0
//
// ParseSequencesKernel: what the ops for SequenceExamples have in common: the contexts and the
// feature lists of a batch of records, or of one alone.
#pragma once

#include <string>
#include <vector>

#include "core/op/kernel.h"
#include "kernels/parsing/features.h"

namespace penstock {

// The request for feature lists; keys as FeatureRequest has them.
struct ListRequest {
  std::vector<std::string> sparse_keys, dense_keys, ragged_keys;
  std::vector<DType> sparse_types, dense_types, ragged_types;
  std::vector<PartialShape> dense_shapes;
  std::vector<bool> may_miss;  // of dense_keys
  bool lengths = true;         // of dense lists are outputs, too
};

class ParseSequencesKernel : public Kernel {
 public:
  // The attributes but keys and ragged types.
  Status Init(const KernelInit& node) override;

 protected:
  // The inputs that name the records, and give the first default of the context's dense features.
  struct Inputs {
    int names, defaults;
  };
  // `context` and `lists` are those below with keys, which are checked against the attributes.
  Status Parse(FeatureRequest context, ListRequest lists, const Inputs& inputs,
               KernelContext& ctx) const;

  size_t num_context_dense() const { return context_dense_types_.size(); }

  FeatureRequest context_;  // without keys
  ListRequest lists_;       // without keys

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
