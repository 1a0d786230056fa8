// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/env.h"
#include "core/base/guarded.h"
#include "core/compiler/passes/passes.h"
#include "core/graph/loop_frames.h"
#include "core/op/kernel.h"
#include "core/op/private_attrs.h"

namespace penstock {
namespace {

// The largest folded constant. Every prepared step keeps its constants in memory, so a larger value
// is cheaper to compute in each step.
constexpr int64_t kFoldedBytesMax = 10 << 20;

// Returns whether the node is a constant from which other nodes may be folded. A constant with a
// control input may be on a branch that is not taken, or in a loop; nodes computed from it must
// stay on this branch or in this loop.
bool IsConst(const Node& node) { return node.op().is_constant && node.control_inputs().empty(); }

bool MayFold(const Node& node) {
  if (node.op().stateful || node.name().empty() || node.op().internal()) return false;
  if (node.op().is_constant || node.num_outputs() == 0) return false;
  if (!node.control_inputs().empty() || FlowOpOf(node) != FlowOp::kNone) return false;
  for (const EdgeType& type : node.output_types()) {
    const bool data = IsPlain(type.dtype) || type.dtype == DType::kString;
    if (type.ref || !data) return false;
  }
  return true;
}

// Returns whether an output of the node is too large for folding. Uses the inferred shapes, so that
// such an output is never computed.
bool TooLarge(const Node& node, const ShapeMap& shapes) {
  if (static_cast<size_t>(node.id()) >= shapes.size()) return false;
  for (int i = 0; i < node.num_outputs(); ++i) {
    const PartialShape& shape = shapes[node.id()][i];
    if (!shape.known_rank()) continue;
    double bytes = static_cast<double>(SizeOf(node.output_type(i).dtype));
    for (const int64_t dim : shape.dims()) bytes *= static_cast<double>(std::abs(dim));
    if (bytes > kFoldedBytesMax) return true;
  }
  return false;
}

class Folder {
 public:
  Folder(Graph* graph, Env& env, Scheduler& threads)
      : graph_(*graph), env_(env), threads_(threads) {}

  Status Run(const ShapeMap& shapes) {
    ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    // The shape of a tensor on a branch may be known although the branch is not taken. A constant
    // with this shape would exist even then. So shapes are not folded if the graph has branches.
    const bool branches = std::any_of(order.begin(), order.end(), [](const Node* node) {
      return FlowOpOf(*node) != FlowOp::kNone;
    });
    for (Node* node : order) {
      if (!MayFold(*node) || TooLarge(*node, shapes)) continue;
      std::vector<Tensor> values;
      if (!branches) values = KnownShape(*node, shapes);
      if (values.empty()) values = Evaluate(*node);
      if (!ReserveBytes(values)) continue;
      if (!values.empty()) RETURN_IF_ERROR(Replace(node, std::move(values)));
    }
    return OkStatus();
  }

 private:
  // Subtracts the bytes of `values` from bytes_left_. If bytes_left_ is smaller, returns false and
  // subtracts nothing.
  bool ReserveBytes(const std::vector<Tensor>& values) {
    int64_t bytes = 0;
    for (const Tensor& value : values) bytes += static_cast<int64_t>(value.bytes());
    if (bytes > bytes_left_) return false;
    bytes_left_ -= bytes;
    return true;
  }

  // Returns the value of a Shape, Size or Rank node if the shape of its input is known.
  std::vector<Tensor> KnownShape(const Node& node, const ShapeMap& shapes) {
    const ShapeOp op = node.op().shape_op;
    if (op == ShapeOp::kNone || op == ShapeOp::kPack || node.num_inputs() != 1) return {};
    const Endpoint in = node.input(0);
    // Constants added by this pass have no inferred shapes.
    if (static_cast<size_t>(in.node->id()) >= shapes.size()) return {};
    const PartialShape& shape = shapes[in.node->id()][in.index];
    if (op == ShapeOp::kRank) {
      if (!shape.known_rank()) return {};
      return {Tensor::Scalar<int32_t>(shape.rank())};
    }
    if (!shape.fully_known()) return {};
    const Shape known = shape.ToShape();
    std::vector<int64_t> numbers(known.dims().begin(), known.dims().end());
    if (op == ShapeOp::kSize) numbers = {known.num_elements()};
    const Shape result_shape =
        op == ShapeOp::kSize ? Shape() : Shape({static_cast<int64_t>(numbers.size())});
    if (node.output_type(0).dtype == DType::kInt64) {
      return {Tensor::Of<int64_t>(result_shape, numbers)};
    }
    for (int64_t n : numbers) {
      if (n > std::numeric_limits<int32_t>::max())
        return {};  // the kernel reports the overflow when it runs
    }
    return {
        Tensor::Of<int32_t>(result_shape, std::vector<int32_t>(numbers.begin(), numbers.end()))};
  }

  // Runs the node's CPU kernel on constant inputs; returns nothing if that is not possible.
  std::vector<Tensor> Evaluate(const Node& node) {
    if (node.num_inputs() == 0) return {};
    std::vector<Tensor> inputs;
    for (const Endpoint& in : node.inputs()) {
      if (!IsConst(*in.node)) return {};
      const Tensor* value = in.node->attr<Tensor>("value");
      if (value == nullptr) return {};
      inputs.push_back(*value);
    }
    const std::string device = "/device:CPU:0";
    const KernelInit init{.name = node.name(),
                          .op = node.op(),
                          .attrs = node.attrs(),
                          .device = device,
                          .input_types = node.input_types(),
                          .output_types = node.output_types()};
    StatusOr<std::unique_ptr<Kernel>> kernel = graph_.registry().MakeKernel("CPU", init);
    if (!kernel.ok() || (*kernel)->AsAsync() != nullptr) return {};
    std::vector<Tensor> outputs(node.num_outputs());
    StepContext step{.resources = &resources_,
                     .step_resources = &resources_,
                     .cancellation = &cancellation_,
                     .threads = &threads_,
                     .env = &env_};
    KernelContext ctx({.step = &step,
                       .node_name = &node.name(),
                       .device_name = &device,
                       .allocator = &CpuAllocator(),
                       .host_allocator = &CpuAllocator(),
                       .inputs = inputs.data(),
                       .outputs = outputs.data(),
                       .output_types = node.output_types().data(),
                       .num_inputs = node.num_inputs(),
                       .num_outputs = node.num_outputs()});
    // If the kernel fails, leave the node in the graph: the step reports the error if it runs the
    // node.
    if (!Guarded([&] { return (*kernel)->Compute(ctx); }).ok()) return {};
    for (const Tensor& output : outputs) {
      if (!output.valid() || static_cast<int64_t>(output.bytes()) > kFoldedBytesMax) return {};
    }
    return outputs;
  }

  Status Replace(Node* node, std::vector<Tensor> values) {
    for (int i = 0; i < node->num_outputs(); ++i) {
      Graph::NodeSpec spec{.name = graph_.UniqueName(StrCat(node->name(), "/folded")),
                           .op = "Const",
                           .attrs = {{"dtype", values[i].dtype()}, {"value", values[i]}},
                           .device = node->requested_device()};
      if (const AttrValue* group = node->FindAttr(kColocationAttr)) {
        spec.attrs[kColocationAttr] = *group;
      }
      ASSIGN_OR_RETURN(Node * constant, graph_.AddNode(std::move(spec)));
      RETURN_IF_ERROR(graph_.ReplaceUses({node, i}, {constant, 0}));
    }
    return OkStatus();
  }

  Graph& graph_;
  int64_t bytes_left_ = 256 << 20;  // how many more bytes folded constants may take
  Env& env_;
  Scheduler& threads_;
  ResourceStore resources_;
  Cancellation cancellation_;
};

}  // namespace

Status FoldConstants(PassContext& context) {
  ASSIGN_OR_RETURN(const ShapeMap* const shapes, context.Shapes());
  return Folder(context.graph, *context.options.env, *context.options.threads).Run(*shapes);
}

}  // namespace penstock
