// SPDX-License-Identifier: Apache-2.0
//
// ShapeScope: what a shape function sees: the partial shapes of a node's inputs, the values of
// inputs that are constant, its attributes; and it states the shapes of the outputs.
//
// Errors of shape functions say what was expected; the caller puts the node's name in front.
// Single-threaded.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/attr.h"
#include "core/op/op_def.h"
#include "core/tensor/resource_handle.h"
#include "core/tensor/shape.h"

namespace penstock {

class ShapeScope {
 public:
  struct Input {
    PartialShape shape;
    const Tensor* constant = nullptr;                  // known value, or null
    const ResourceHandle::Element* element = nullptr;  // what a resource input holds, or null
  };

  ShapeScope(const OpDef& op, const Attrs& attrs, std::vector<Input> inputs, int num_outputs);

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const PartialShape& input(int i) const { return inputs_[i].shape; }
  const Tensor* constant(int i) const { return inputs_[i].constant; }
  // The integers of a constant int32 or int64 vector or scalar input; empty optional-like: returns
  // false where not constant.
  bool ConstantInts(int i, std::vector<int64_t>* values) const;
  const ResourceHandle::Element* element(int i) const { return inputs_[i].element; }
  const Attrs& attrs() const { return attrs_; }
  // CHECKs that the op declares it with that kind (attributes were completed before).
  template <class T>
  const T& attr(string_view name) const {
    const auto it = attrs_.find(name);
    CHECK(it != attrs_.end() && it->second.template get<T>() != nullptr, "attribute ", name);
    return *it->second.template get<T>();
  }

  void set_output(int i, PartialShape shape) { outputs_[i] = std::move(shape); }
  const PartialShape& output(int i) const { return outputs_[i]; }
  // For outputs that are resource handles: what they hold.
  void set_output_element(int i, ResourceHandle::Element element);
  const std::vector<PartialShape>& outputs() const { return outputs_; }
  const std::vector<ResourceHandle::Element>& output_elements() const { return elements_; }

  // Input i, or an error that says "input 'x' must have rank 2, has shape [3]".
  StatusOr<PartialShape> WithRank(int i, int rank) const;
  StatusOr<PartialShape> WithRankAtLeast(int i, int rank) const;

 private:
  const OpDef& op_;
  const Attrs& attrs_;
  std::vector<Input> inputs_;
  std::vector<PartialShape> outputs_;
  std::vector<ResourceHandle::Element> elements_;
};

// Shape functions that many ops share.
Status SameShape(ShapeScope& s);       // every output as input 0
Status ScalarShape(ShapeScope& s);     // every output a scalar
Status BroadcastShape(ShapeScope& s);  // output 0 = broadcast of inputs 0 and 1
Status NoOutputs(ShapeScope& s);
Status UnknownShape(ShapeScope& s);
Status ShapeFromAttr(ShapeScope& s);  // output 0 = attribute "shape"
// NumPy's rule for one pair. InvalidArgument names both shapes.
StatusOr<PartialShape> Broadcast(const PartialShape& a, const PartialShape& b);

}  // namespace penstock
