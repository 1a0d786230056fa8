// SPDX-License-Identifier: Apache-2.0
//
// TensorArray: an array of tensors that loops read and write. Each element is written once.
//
//   TensorArray squares(p, n, DType::kFloat);
//   const Outputs last = While(p, {i0, squares.flow()}, cond, [&](const Outputs& v) {
//     TensorArray now = squares.At(v[1]);
//     return Outputs{v[0] + 1, now.Write(v[0], Square(...)).flow()};
//   });
//   Output all = squares.At(last[1]).Stack();
//
// A value type: Write returns a new TensorArray, whose reads run after the write. The flow tensor
// orders reads and writes: if a loop writes, the flow must be one of its loop variables. Reads and
// writes have gradients. Errors of the nodes name the line of the call.
#pragma once

#include "core/graph/builder.h"
#include "core/op/output.h"

namespace penstock::client {

struct TensorArrayOptions {
  PartialShape element_shape = {};        // the shape of every element
  bool dynamic_size = false;              // if true, a write past the end grows the array
  bool clear_after_read = true;           // if true, a read frees the element: read it only once
  bool identical_element_shapes = false;  // the first write sets the shape of all elements
  string_view name = "";
};

class TensorArray {
 public:
  TensorArray(GraphBuilder& graph, Output size, DType dtype, const TensorArrayOptions& options = {},
              SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  // Returns an array whose elements are the slices of `values` along its first dimension.
  static TensorArray Unstack(GraphBuilder& graph, Output values,
                             const TensorArrayOptions& options = {},
                             SourceLine line = {__builtin_FILE(), __builtin_LINE()});

  Output handle() const { return handle_; }
  Output flow() const { return flow_; }
  DType dtype() const { return dtype_; }
  // Returns the same array with another flow: reads of the result run after all writes that `flow`
  // depends on.
  TensorArray At(Output flow) const;

  TensorArray Write(Output index, Output value,
                    SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;
  TensorArray Scatter(Output indices, Output values,
                      SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Writes consecutive slices of `value` along its first dimension, one per element; `lengths`
  // (int64) are the lengths of the slices.
  TensorArray Split(Output value, Output lengths,
                    SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;

  Output Read(Output index, SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;
  Output Gather(Output indices, SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Stacks all elements along a new first dimension.
  Output Stack(SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Concatenates all elements along their first dimension.
  Output Concat(SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;
  // Returns the number of elements, an int32.
  Output Size(SourceLine line = {__builtin_FILE(), __builtin_LINE()}) const;

 private:
  TensorArray() = default;
  GraphBuilder* graph_ = nullptr;
  Output handle_, flow_;
  DType dtype_ = DType::kInvalid;
  PartialShape element_shape_;
};

}  // namespace penstock::client
