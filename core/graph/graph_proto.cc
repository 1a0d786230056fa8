// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph_proto.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error_origin.h"
#include "core/base/version.h"
#include "core/functions/function_inliner.h"
#include "core/graph/tensor_name.h"
#include "core/tensor/memory_account.h"
#include "core/wire/attr_proto.h"
#include "core/wire/tensor_fields.h"
#include "core/wire/tensor_proto.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

namespace {

bool Declares(const OpDef& op, const std::string& attr) {
  for (const TypeAttrDef& def : op.types) {
    if (def.name == attr) return true;
  }
  for (const AttrDef& def : op.attrs) {
    if (def.name == attr) return true;
  }
  return false;
}

int64_t TensorBytes(const AttrValue& attr) {
  int64_t bytes = 0;
  if (const Tensor* t = attr.get<Tensor>()) bytes += static_cast<int64_t>(t->bytes());
  if (const auto* list = attr.get<std::vector<Tensor>>()) {
    for (const Tensor& t : *list) bytes += static_cast<int64_t>(t.bytes());
  }
  return bytes;
}

// A large Const whose elements are all equal takes a hundred bytes in a GraphDef. In a Graph it
// becomes the op _FilledConst (kernels/flow/filled_const.cc), which stores the value as a scalar
// and makes the tensor when it runs. Export turns it into a Const again.
constexpr char kFilledConstOp[] = "_FilledConst";
// Smaller tensors stay Consts: import makes the tensor once, and all steps share it.
constexpr int64_t kFilledConstBytesMin = int64_t{16} << 20;

// An estimate of the memory for a node without its names and tensors: 600 bytes in the session's
// graph, and 600 bytes in the graph of a prepared step.
constexpr int64_t kNodeBytes = 1200;
constexpr int64_t kInlinedBytesMax = int64_t{1} << 31;

// Returns ResourceExhausted if the task has no memory for the graph. Without this check the process
// might be killed.
Status CheckMemoryFor(const tensorflow::GraphDef& def) {
  const int64_t needed =
      kNodeBytes * def.node_size() + 2 * static_cast<int64_t>(def.ByteSizeLong());
  const int64_t available = MemoryAccount::Task().available();
  if (needed <= available) return OkStatus();
  return ResourceExhausted("the graph's ", def.node_size(), " nodes take about ", needed,
                           " bytes, and this task (--memory_limit) has ", available, " left");
}

// Returns whether the node is a Const of plain elements, of kFilledConstBytesMin bytes or more,
// with one value or none (zeros).
bool IsFilledConst(const tensorflow::NodeDef& def) {
  if (def.op() != "Const") return false;
  const auto value = def.attr().find("value");
  if (value == def.attr().end() || !value->second.has_tensor()) return false;
  const tensorflow::TensorProto& proto = value->second.tensor();
  const StatusOr<DType> dtype = DTypeFromNumber(proto.dtype());
  if (!dtype.ok() || !IsPlain(*dtype) || !proto.tensor_content().empty()) return false;
  if (ElementsInField(proto, *dtype) > 1) return false;
  const StatusOr<PartialShape> declared = ShapeFromProto(proto.tensor_shape());
  if (!declared.ok() || !declared->fully_known()) return false;
  const StatusOr<Shape> shape = Shape::Make(declared->dims());
  return shape.ok() &&
         shape->num_elements() >= kFilledConstBytesMin / static_cast<int64_t>(SizeOf(*dtype));
}

// Adds the attributes "value", a scalar, and "shape" to `attrs`. REQUIRES: IsFilledConst(def).
Status ReadFilledConst(const tensorflow::NodeDef& def, Attrs* attrs) {
  tensorflow::TensorProto value = def.attr().at("value").tensor();
  ASSIGN_OR_RETURN(PartialShape shape, ShapeFromProto(value.tensor_shape()));
  value.clear_tensor_shape();
  ASSIGN_OR_RETURN(Tensor scalar, TensorFromProto(value));
  attrs->insert_or_assign("value", std::move(scalar));
  attrs->insert_or_assign("shape", std::move(shape));
  return OkStatus();
}

// Writes op and attributes of `node` to `def`, as a Const. REQUIRES: the node's op is
// kFilledConstOp.
void WriteFilledConst(const Node& node, tensorflow::NodeDef* def) {
  def->set_op("Const");
  for (const auto& [name, value] : node.attrs()) {
    if (name != "value" && name != "shape") AttrToProto(value, &(*def->mutable_attr())[name]);
  }
  const Tensor& value = *node.attr<Tensor>("value");
  tensorflow::TensorProto* const proto = (*def->mutable_attr())["value"].mutable_tensor();
  proto->set_dtype(static_cast<tensorflow::DataType>(Number(value.dtype())));
  ShapeToProto(*node.attr<PartialShape>("shape"), proto->mutable_tensor_shape());
  (void)WriteField(value, proto);  // every plain type has a field
}

// One import. Nodes are added in the order of the GraphDef, so that an exported graph has the same
// order. Inputs from later nodes are connected at the end.
class Importer {
 public:
  Importer(const tensorflow::GraphDef& def, const ImportLimits& limits, Graph* graph)
      : def_(def), limits_(limits), graph_(*graph), bytes_left_(limits.tensor_bytes_max) {}

  Status Run();

 private:
  struct DeferredEdge {
    Node* node;
    int input;  // index of the data input; unused for a control edge
    TensorNameView source;
  };

  Status AddNode(const tensorflow::NodeDef& def);
  Status ReadInputs(const tensorflow::NodeDef& def, Graph::NodeSpec* spec);
  // If `filled`, reads all attributes except the value, which ReadFilledConst reads.
  Status ReadAttrs(const tensorflow::NodeDef& def, bool filled, Attrs* attrs);
  Status Connect(const DeferredEdge& edge);

  const tensorflow::GraphDef& def_;
  const ImportLimits& limits_;
  Graph& graph_;
  int64_t bytes_left_;
  std::vector<DeferredEdge> deferred_;
};

Status Importer::Run() {
  if (def_.node_size() > limits_.nodes_max) {
    return ResourceExhausted("the graph has ", def_.node_size(), " nodes, at most ",
                             limits_.nodes_max, " are allowed");
  }
  RETURN_IF_ERROR(CheckMemoryFor(def_));
  for (const tensorflow::NodeDef& node : def_.node()) RETURN_IF_ERROR(AddNode(node));
  for (const DeferredEdge& edge : deferred_) RETURN_IF_ERROR(Connect(edge));
  return graph_.TopologicalOrder().status();
}

Status Importer::AddNode(const tensorflow::NodeDef& def) {
  const bool filled = IsFilledConst(def) && graph_.registry().FindOp(kFilledConstOp) != nullptr;
  Graph::NodeSpec spec{
      .name = def.name(), .op = filled ? kFilledConstOp : def.op(), .device = def.device()};
  const size_t first_later = deferred_.size();
  Status status = ReadInputs(def, &spec);
  if (status.ok()) status = ReadAttrs(def, filled, &spec.attrs);
  if (status.ok() && filled) status = ReadFilledConst(def, &spec.attrs);
  if (!status.ok()) return InNode(status, def.name());
  ASSIGN_OR_RETURN(Node * node, graph_.AddNode(std::move(spec)));
  for (size_t i = first_later; i < deferred_.size(); ++i) deferred_[i].node = node;
  return OkStatus();
}

Status Importer::ReadInputs(const tensorflow::NodeDef& def, Graph::NodeSpec* spec) {
  bool controls = false;
  spec->inputs.reserve(def.input_size());
  for (const std::string& text : def.input()) {
    ASSIGN_OR_RETURN(const TensorNameView source, TensorNameView::Parse(text));
    if (controls && !source.control) {
      return InvalidArgument("input '", text, "' stands after a control input");
    }
    controls = source.control;
    Node* node = graph_.FindNode(source.node);
    if (node == nullptr) {
      deferred_.push_back({nullptr, static_cast<int>(spec->inputs.size()), source});
    }
    if (!controls) {
      spec->inputs.push_back(node == nullptr ? Endpoint{} : Endpoint{node, source.index});
    } else if (node != nullptr) {
      spec->control_inputs.push_back(node);
    }
  }
  return OkStatus();
}

Status Importer::ReadAttrs(const tensorflow::NodeDef& def, bool filled, Attrs* attrs) {
  const OpDef* op = graph_.registry().FindOp(def.op());
  for (const auto& [name, proto] : def.attr()) {
    if (filled && name == "value") continue;
    StatusOr<AttrValue> value = AttrFromProto(proto, bytes_left_);
    if (value.ok()) {
      bytes_left_ -= TensorBytes(*value);
      attrs->emplace(name, *std::move(value));
    } else if (op != nullptr && Declares(*op, name)) {
      return Annotate(value.status(), StrCat("attribute '", name, "'"));
    }
    // An attribute that the op does not declare, of a kind that this version does not know, is
    // ignored.
  }
  return OkStatus();
}

Status Importer::Connect(const DeferredEdge& edge) {
  Node* source = graph_.FindNode(edge.source.node);
  if (source == nullptr) {
    return InNode(InvalidArgument("its input '", edge.source.node, "' does not exist"),
                  edge.node->name());
  }
  if (!edge.source.control) {
    return graph_.SetInput(edge.node, edge.input, {source, edge.source.index});
  }
  graph_.AddControlEdge(source, edge.node);
  return OkStatus();
}

void ExportNode(const Node& node, tensorflow::NodeDef* def) {
  def->set_name(node.name());
  def->set_op(node.op_name());
  def->set_device(node.assigned_device().empty() ? node.requested_device()
                                                 : node.assigned_device());
  for (const Endpoint& input : node.inputs()) {
    const std::string& source = input.node->name();
    def->add_input(input.index == 0 ? source : StrCat(source, ":", input.index));
  }
  for (const Node* before : node.control_inputs()) def->add_input(StrCat("^", before->name()));
  if (node.op_name() == kFilledConstOp) return WriteFilledConst(node, def);
  for (const auto& [name, value] : node.attrs()) AttrToProto(value, &(*def->mutable_attr())[name]);
}

}  // namespace

Status ImportGraph(const tensorflow::GraphDef& def, Graph* graph, const ImportLimits& limits) {
  tensorflow::GraphDef inlined;
  const bool calls = CallsFunctions(def);
  if (calls) {
    // The limit is a fraction because the expanded messages, the graph made of them and the
    // compiled graph are in memory at the same time.
    const int64_t bytes_max = std::min(kInlinedBytesMax, MemoryAccount::Task().available() / 4);
    RETURN_IF_ERROR(InlineFunctions(def, graph->registry(), limits.nodes_max, bytes_max, &inlined));
  }
  const int first_id = graph->max_id();
  // After inlining, a SymbolicGradient still names its function, although the function's body is in
  // the graph.
  const Status status = Importer(calls ? inlined : def, limits, graph).Run();
  if (!status.ok()) graph->RemoveNodesFrom(first_id);
  return status;
}

void ExportGraph(const Graph& graph, tensorflow::GraphDef* def, int first_id) {
  def->Clear();
  def->mutable_versions()->set_producer(kGraphDefProducer);
  for (int id = first_id; id < graph.max_id(); ++id) {
    if (const Node* node = graph.node(id)) ExportNode(*node, def->add_node());
  }
}

}  // namespace penstock
