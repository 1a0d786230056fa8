// SPDX-License-Identifier: Apache-2.0
//
// ShapeScope: the argument of a shape function. It gives the partial shapes of a node's inputs, the
// values of constant inputs and the attributes; the function sets the shapes of the outputs.
//
// Errors of shape functions say what the function expected; its caller adds the node's name in
// front. Not thread-safe. Also the shape functions that many ops share.
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
    const Tensor* constant = nullptr;                  // the value if it is known, or null
    const ResourceHandle::Element* element = nullptr;  // type and shape of a resource's contents
  };

  ShapeScope(const OpDef& op, const Attrs& attrs, std::vector<Input> inputs, int num_outputs);

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const PartialShape& input(int i) const { return inputs_[i].shape; }
  const Tensor* constant(int i) const { return inputs_[i].constant; }
  // Copies the integers of input i to `values`. Returns false if the input is not constant, not
  // int32 or int64, or neither a scalar nor a vector.
  bool ConstantInts(int i, std::vector<int64_t>* values) const;
  const ResourceHandle::Element* element(int i) const { return inputs_[i].element; }
  const Attrs& attrs() const { return attrs_; }
  // Returns an attribute. CHECKs that it exists with type T: the caller of the shape function has
  // checked and completed the attributes.
  template <class T>
  const T& attr(string_view name) const {
    const auto it = attrs_.find(name);
    CHECK(it != attrs_.end() && it->second.template get<T>() != nullptr, "attribute ", name);
    return *it->second.template get<T>();
  }

  void set_output(int i, PartialShape shape) { outputs_[i] = std::move(shape); }
  const PartialShape& output(int i) const { return outputs_[i]; }
  // Sets type and shape of the contents of the resource whose handle is output `i`.
  void set_output_element(int i, ResourceHandle::Element element);
  const std::vector<PartialShape>& outputs() const { return outputs_; }
  const std::vector<ResourceHandle::Element>& output_elements() const { return elements_; }

  // Returns the shape of input i; if its rank is unknown, a shape of `rank` unknown dimensions. If
  // the rank is another one, returns an error: "input 'x' must have rank 2, has shape [3]".
  StatusOr<PartialShape> WithRank(int i, int rank) const;
  StatusOr<PartialShape> WithRankAtLeast(int i, int rank) const;

 private:
  const OpDef& op_;
  const Attrs& attrs_;
  std::vector<Input> inputs_;
  std::vector<PartialShape> outputs_;
  std::vector<ResourceHandle::Element> elements_;
};

// Shape functions that many ops share:
Status SameShape(ShapeScope& s);       // every output has the shape of input 0
Status ScalarShape(ShapeScope& s);     // every output is a scalar
Status BroadcastShape(ShapeScope& s);  // output 0 = broadcast of inputs 0 and 1
Status NoOutputs(ShapeScope& s);
Status UnknownShape(ShapeScope& s);
Status ShapeFromAttr(ShapeScope& s);  // output 0 = attribute "shape"
// Applies NumPy's broadcasting rule to two shapes, which may be partly unknown. If they cannot be
// broadcast, returns an InvalidArgument that names both.
StatusOr<PartialShape> Broadcast(const PartialShape& a, const PartialShape& b);

}  // namespace penstock
