// SPDX-License-Identifier: Apache-2.0
//
// Gradient functions of ops. Given the gradients of a node's outputs, a gradient function adds the
// nodes that compute the gradients of the node's inputs. These are ordinary nodes, so they can be
// differentiated again.
//
//   .gradient = [](const GradientScope& g) -> std::vector<Gradient> { return {g.dy() * Exp(g.x())};
//   }
#pragma once

#include <string>
#include <vector>

#include "core/op/attr.h"
#include "core/op/op_def.h"
#include "core/op/output.h"

namespace penstock {

// A gradient is none, a dense tensor, or sparse, such as that of Gather. A sparse gradient stands
// for a tensor of shape `dense_shape`, to which `values[k]` is added at row `indices[k]` for each
// k. Indices may repeat.
struct Gradient {
  Gradient() = default;
  Gradient(Output dense) : values(dense) {}  // NOLINT
  Gradient(Output values, Output indices, Output dense_shape)
      : values(values), indices(indices), dense_shape(dense_shape) {}
  bool none() const { return !values.valid(); }
  bool sparse() const { return indices.valid(); }

  Output values;
  Output indices;      // invalid unless sparse
  Output dense_shape;  // invalid unless sparse
};

// Returns the gradient as a dense tensor. For a sparse gradient, adds nodes that convert it, and
// that sum rows with the same index. Returns an invalid Output if the gradient is none.
Output Dense(const Gradient& gradient);

// The view of the forward node that a gradient function gets.
class GradientScope {
 public:
  GradientScope(GraphSink& sink, const OpDef& op, const Attrs& attrs, std::string node_name,
                Outputs inputs, Outputs outputs, std::vector<Gradient> output_gradients);

  GraphSink& sink() const { return sink_; }
  const std::string& node_name() const { return node_name_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  Output x(int i = 0) const { return inputs_[i]; }
  Output y(int i = 0) const { return outputs_[i]; }
  bool has_dy(int i = 0) const { return !output_gradients_[i].none(); }
  // Returns the gradient of output i as a dense tensor; ZerosLike(y(i)) if no gradient reaches it.
  Output dy(int i = 0) const;
  const Gradient& raw_dy(int i = 0) const { return output_gradients_[i]; }
  const Attrs& attrs() const { return attrs_; }
  template <class T>
  const T& attr(string_view name) const {
    const auto it = attrs_.find(name);
    CHECK(it != attrs_.end() && it->second.template get<T>() != nullptr, "attribute ", name);
    return *it->second.template get<T>();
  }
  DType dtype() const { return inputs_[0].dtype(); }
  // Adds a constant to the graph and returns its output.
  Output Const(Tensor value) const { return Constant(sink_, std::move(value)); }
  template <class T>
  Output Const(T value) const {
    return Constant(sink_, Tensor::Scalar<T>(value));
  }

 private:
  GraphSink& sink_;
  const OpDef& op_;
  const Attrs& attrs_;
  std::string node_name_;
  Outputs inputs_, outputs_;
  std::vector<Gradient> output_gradients_;
};

// The gradient function of ops that deliberately pass no gradient (Shape, ArgMax, comparisons,
// ...). Returns an empty Gradient for each input.
std::vector<Gradient> NoGradient(const GradientScope& g);

// Returns the gradient of a broadcast operand: `dy` summed to the shape of `x`.
Output SumToShapeOf(Output dy, Output x);
// Does the same as SumToShapeOf for both operands of a broadcasting binary op.
std::vector<Gradient> SumToInputs(const GradientScope& g, Output dx, Output dy);

// Math ops for gradient functions. Each function adds a node of the op with the function's name;
// but ShapeOf, SizeOf and RankOf add a Shape, Size and Rank, and Gather adds a GatherV2. Conj of
// real numbers, Cast to the present type of x, and AddN of one output add no node and return their
// argument.
Output Exp(Output x);
Output Log(Output x);
Output Sqrt(Output x);
Output Rsqrt(Output x);
Output Square(Output x);
Output Tanh(Output x);
Output Sigmoid(Output x);
Output Sin(Output x);
Output Cos(Output x);
Output Sign(Output x);
Output Abs(Output x);
Output Conj(Output x);
Output Reciprocal(Output x);
Output Pow(Output x, Output y);
Output Minimum(Output x, Output y);
Output Maximum(Output x, Output y);
Output ZerosLike(Output x);
Output OnesLike(Output x);
Output Identity(Output x);
Output Cast(Output x, DType to);
Output ShapeOf(Output x, DType out_type = DType::kInt32);
Output SizeOf(Output x, DType out_type = DType::kInt32);
Output RankOf(Output x);
Output Reshape(Output x, Output shape);
Output Transpose(Output x, Output permutation);
Output MatMul(Output a, Output b, bool transpose_a = false, bool transpose_b = false);
Output Sum(Output x, Output axes, bool keep_dims = false);
Output Mean(Output x, Output axes, bool keep_dims = false);
Output Greater(Output x, Output y);
Output GreaterEqual(Output x, Output y);
Output Less(Output x, Output y);
Output LessEqual(Output x, Output y);
Output Equal(Output x, Output y);
Output LogicalAnd(Output x, Output y);
Output LogicalNot(Output x);
Output Select(Output condition, Output x, Output y);
Output ExpandDims(Output x, Output axis);
Output Fill(Output dims, Output value);
Output BroadcastTo(Output x, Output shape);
Output AddN(const Outputs& xs);
Output Range(Output start, Output limit, Output delta);
Output Gather(Output params, Output indices, Output axis);
Output ConcatV2(const Outputs& values, Output axis);
Output Pack(const Outputs& values, int64_t axis = 0);
Output StopGradient(Output x);

}  // namespace penstock
