// SPDX-License-Identifier: Apache-2.0
//
// TensorArray: tensors by number, written once each: what loops read from and write to.
//
//   TensorArray squares(p, n, DType::kFloat);
//   const Outputs last = While(p, {i0, squares.flow()}, cond, [&](const Outputs& v) {
//     TensorArray now = squares.At(v[1]);
//     return Outputs{v[0] + 1, now.Write(v[0], Square(...)).flow()};
//   });
//   Output all = squares.At(last[1]).Stack();
//
// A value: writing gives a new one, that comes after the write. The flow says what comes before
// what: it is a loop's variable if a loop writes. Gradients go through all of it.
#pragma once

#include "core/graph/builder.h"
#include "core/op/output.h"

namespace penstock::client {

struct TensorArrayOptions {
  PartialShape element_shape = {};        // of every element
  bool dynamic_size = false;              // writing past the end makes room
  bool clear_after_read = true;           // each element may be read once
  bool identical_element_shapes = false;  // the first write says what the others must be
  string_view name = "";
};

class TensorArray {
 public:
  TensorArray(GraphBuilder& graph, Output size, DType dtype,
              const TensorArrayOptions& options = {});

  // The slices of `values` along its first dimension, as elements.
  static TensorArray Unstack(GraphBuilder& graph, Output values,
                             const TensorArrayOptions& options = {});

  Output handle() const { return handle_; }
  Output flow() const { return flow_; }
  DType dtype() const { return dtype_; }
  // The same array, after what `flow` comes after.
  TensorArray At(Output flow) const;

  TensorArray Write(Output index, Output value) const;
  TensorArray Scatter(Output indices, Output values) const;
  // Pieces of `value` along its first dimension, as long as `lengths` (int64) says.
  TensorArray Split(Output value, Output lengths) const;

  Output Read(Output index) const;
  Output Gather(Output indices) const;
  Output Stack() const;   // all, along a new first dimension
  Output Concat() const;  // all, along their first dimension
  Output Size() const;    // int32

 private:
  TensorArray() = default;
  GraphBuilder* graph_ = nullptr;
  Output handle_, flow_;
  DType dtype_ = DType::kInvalid;
  PartialShape element_shape_;
};

}  // namespace penstock::client
