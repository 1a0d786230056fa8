// SPDX-License-Identifier: Apache-2.0
#include "client/tensor_array.h"

#include <string>

#include "client/ops/line_scope.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

PartialShape WithoutFirst(const PartialShape& shape) {
  if (!shape.known_rank() || shape.rank() == 0) return {};
  return PartialShape(shape.dims().subspan(1));
}

}  // namespace

TensorArray::TensorArray(GraphBuilder& graph, Output size, DType dtype,
                         const TensorArrayOptions& options, SourceLine line)
    : graph_(&graph), dtype_(dtype), element_shape_(options.element_shape) {
  const CallerLine source(graph, line);
  const Outputs made = CallN("TensorArrayV3", {size},
                             {{"dtype", dtype},
                              {"element_shape", options.element_shape},
                              {"dynamic_size", options.dynamic_size},
                              {"clear_after_read", options.clear_after_read},
                              {"identical_element_shapes", options.identical_element_shapes},
                              {"tensor_array_name", std::string(options.name)}});
  handle_ = made[0];
  flow_ = made[1];
}

TensorArray TensorArray::Unstack(GraphBuilder& graph, Output values,
                                 const TensorArrayOptions& options, SourceLine line) {
  const CallerLine source(graph, line);
  const Output zero = Constant(graph, Tensor::Scalar<int32_t>(0));
  const Output size = penstock::Gather(ShapeOf(values), zero, zero);
  TensorArrayOptions known = options;
  if (!known.element_shape.known_rank()) known.element_shape = WithoutFirst(values.shape());
  const TensorArray empty(graph, size, values.dtype(), known);
  const Output one = Constant(graph, Tensor::Scalar<int32_t>(1));
  return empty.Scatter(Range(zero, size, one), values);
}

TensorArray TensorArray::At(Output flow) const {
  TensorArray later = *this;
  later.flow_ = flow;
  return later;
}

TensorArray TensorArray::Write(Output index, Output value, SourceLine line) const {
  const CallerLine source(*graph_, line);
  return At(Call("TensorArrayWriteV3", {handle_, index, value, flow_}));
}

TensorArray TensorArray::Scatter(Output indices, Output values, SourceLine line) const {
  const CallerLine source(*graph_, line);
  return At(Call("TensorArrayScatterV3", {handle_, indices, values, flow_}));
}

TensorArray TensorArray::Split(Output value, Output lengths, SourceLine line) const {
  const CallerLine source(*graph_, line);
  return At(Call("TensorArraySplitV3", {handle_, value, lengths, flow_}));
}

Output TensorArray::Read(Output index, SourceLine line) const {
  const CallerLine source(*graph_, line);
  return Call("TensorArrayReadV3", {handle_, index, flow_}, {{"dtype", dtype_}});
}

Output TensorArray::Gather(Output indices, SourceLine line) const {
  const CallerLine source(*graph_, line);
  return Call("TensorArrayGatherV3", {handle_, indices, flow_},
              {{"dtype", dtype_}, {"element_shape", element_shape_}});
}

Output TensorArray::Stack(SourceLine line) const {
  const CallerLine source(*graph_, line);
  const Output zero = Constant(*graph_, Tensor::Scalar<int32_t>(0));
  const Output one = Constant(*graph_, Tensor::Scalar<int32_t>(1));
  return Gather(Range(zero, Size(), one));
}

Output TensorArray::Concat(SourceLine line) const {
  const CallerLine source(*graph_, line);
  return CallN("TensorArrayConcatV3", {handle_, flow_},
               {{"dtype", dtype_}, {"element_shape_except0", WithoutFirst(element_shape_)}})[0];
}

Output TensorArray::Size(SourceLine line) const {
  const CallerLine source(*graph_, line);
  return Call("TensorArraySizeV3", {handle_, flow_});
}

}  // namespace penstock::client
