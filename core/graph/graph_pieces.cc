// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph_pieces.h"

#include <algorithm>
#include <utility>

#include "core/base/crc32c.h"
#include "core/base/error_origin.h"
#include "core/base/version.h"
#include "core/graph/export_node.h"
#include "core/graph/graph_proto.h"
#include "core/wire/attr_proto.h"
#include "core/wire/tensor_proto.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

constexpr char kPieceOp[] = "_ConstantPiece";
// Marks a constant in the last GraphDef whose value came in pieces.
constexpr char kInPieces[] = "_in_pieces";

int64_t BytesOf(const Tensor& tensor) { return static_cast<int64_t>(tensor.bytes()); }

// Returns the constant's tensor if its bytes may be written in pieces; else null.
const Tensor* PlainValue(const Node& node) {
  if (!node.op().is_constant) return nullptr;
  const Tensor* const value = node.attr<Tensor>("value");
  return value != nullptr && IsPlain(value->dtype()) ? value : nullptr;
}

int64_t TensorBytesOf(const Node& node) {
  int64_t bytes = 0;
  for (const auto& [name, attr] : node.attrs()) {
    if (const Tensor* const tensor = attr.get<Tensor>()) bytes += BytesOf(*tensor);
  }
  return bytes;
}

bool HasMark(const tensorflow::NodeDef& node) { return node.attr().count(kInPieces) > 0; }

struct Piece {
  DType dtype = DType::kInvalid;
  Shape shape;
  int64_t offset = 0;
  const std::string* bytes = nullptr;
};

// Returns the parts of a piece, which is not trusted.
StatusOr<Piece> ParsePiece(const tensorflow::NodeDef& node) {
  Piece piece;
  const auto attr = [&](const char* name) { return node.attr().find(name); };
  const auto dtype = attr("dtype"), shape = attr("shape"), offset = attr("offset"),
             bytes = attr("bytes"), end = node.attr().end();
  if (dtype == end || shape == end || offset == end || bytes == end) {
    return InvalidArgument("a piece of a constant lacks an attribute");
  }
  ASSIGN_OR_RETURN(piece.dtype, DTypeFromNumber(dtype->second.type()));
  ASSIGN_OR_RETURN(const PartialShape declared, ShapeFromProto(shape->second.shape()));
  if (!IsPlain(piece.dtype) || !declared.fully_known()) {
    return InvalidArgument("a piece of a constant of type ", Name(piece.dtype),
                           declared.ToString());
  }
  ASSIGN_OR_RETURN(piece.shape, Shape::Make(declared.dims()));
  piece.offset = offset->second.i();
  piece.bytes = &bytes->second.s();
  return piece;
}

}  // namespace

GraphPieces::GraphPieces(const Graph& graph, const PieceLimits& limits, int first_id)
    : graph_(graph), limits_(limits), first_id_(first_id) {
  int64_t all = 0;
  for (int id = first_id; id < graph.max_id(); ++id) {
    if (const Node* const node = graph.node(id)) all += TensorBytesOf(*node);
  }
  if (all <= limits.whole_bytes_max) return;
  for (int id = first_id; id < graph.max_id(); ++id) {
    const Node* const node = graph.node(id);
    const Tensor* const value = node == nullptr ? nullptr : PlainValue(*node);
    if (value != nullptr && BytesOf(*value) >= limits.constant_bytes_min && value->bytes() > 0) {
      large_.push_back(node);
    }
  }
}

bool GraphPieces::Next(tensorflow::GraphDef* def) {
  if (ended_) return false;
  def->Clear();
  if (next_ < large_.size()) {
    WritePiece(def);
  } else {
    WriteNodes(def);
    ended_ = true;
  }
  return true;
}

void GraphPieces::WritePiece(tensorflow::GraphDef* def) {
  const Node& node = *large_[next_];
  const Tensor& value = *PlainValue(node);
  const int64_t count = std::min(limits_.piece_bytes_max, BytesOf(value) - offset_);
  tensorflow::NodeDef* const piece = def->add_node();
  piece->set_name(node.name());
  piece->set_op(kPieceOp);
  auto& attrs = *piece->mutable_attr();
  attrs["dtype"].set_type(static_cast<tensorflow::DataType>(Number(value.dtype())));
  ShapeToProto(value.shape(), attrs["shape"].mutable_shape());
  attrs["offset"].set_i(offset_);
  attrs["bytes"].set_s(static_cast<const char*>(value.raw_data()) + offset_,
                       static_cast<size_t>(count));
  offset_ += count;
  if (offset_ < BytesOf(value)) return;
  offset_ = 0;
  ++next_;
}

void GraphPieces::WriteNodes(tensorflow::GraphDef* def) const {
  def->mutable_versions()->set_producer(kGraphDefProducer);
  auto large = large_.begin();
  for (int id = first_id_; id < graph_.max_id(); ++id) {
    const Node* const node = graph_.node(id);
    if (node == nullptr) continue;
    tensorflow::NodeDef* const written = def->add_node();
    if (large == large_.end() || *large != node) {
      ExportNode(*node, ConstantValue::kWritten, written);
      continue;
    }
    ExportNode(*node, ConstantValue::kLeftOut, written);
    (*written->mutable_attr())[kInPieces].set_b(true);
    ++large;
  }
}

bool ConstantPieces::IsPiece(const tensorflow::GraphDef& def) {
  return def.node_size() > 0 && def.node(0).op() == kPieceOp;
}

uint32_t ConstantPieces::Checksum(const tensorflow::GraphDef& def) {
  uint32_t checksum = 0;
  if (!IsPiece(def)) return checksum;
  for (const tensorflow::NodeDef& piece : def.node()) {
    const auto bytes = piece.attr().find("bytes");
    if (bytes != piece.attr().end()) checksum = ExtendCrc32c(checksum, bytes->second.s());
  }
  return checksum;
}

Status ConstantPieces::Add(const tensorflow::GraphDef& def) {
  for (const tensorflow::NodeDef& piece : def.node()) {
    RETURN_IF_ERROR(InNode(AddPiece(piece), piece.name()));
  }
  return OkStatus();
}

Status ConstantPieces::AddPiece(const tensorflow::NodeDef& node) {
  ASSIGN_OR_RETURN(const Piece piece, ParsePiece(node));
  if (piece.offset == 0 && !arrivings_.contains(node.name())) {
    // Divides, because a product of numbers from a file may overflow.
    const auto size = static_cast<int64_t>(SizeOf(piece.dtype));
    if (piece.shape.num_elements() > bytes_left_ / size) {
      return DataLoss("the constants take more bytes than their file");
    }
    if (const int64_t bytes = piece.shape.num_elements() * size; bytes < constant_bytes_min_) {
      return InvalidArgument("a piece of a constant of ", bytes, " bytes");
    }
    ASSIGN_OR_RETURN(Tensor value, Tensor::Make(CpuAllocator(), piece.dtype, piece.shape));
    bytes_left_ -= BytesOf(value);
    arrivings_[node.name()].value = std::move(value);
  }
  const auto found = arrivings_.find(node.name());
  if (found == arrivings_.end() || found->second.filled != piece.offset) {
    return InvalidArgument("a piece of a constant at byte ", piece.offset, " is out of order");
  }
  Arriving& its = found->second;
  const auto count = static_cast<int64_t>(piece.bytes->size());
  if (its.value.dtype() != piece.dtype || its.value.shape() != piece.shape ||
      count > BytesOf(its.value) - its.filled) {
    return InvalidArgument("a piece of ", count, " bytes does not fit into its constant");
  }
  CopyPlainBytes(*piece.bytes, piece.dtype,
                 static_cast<char*>(its.value.mutable_raw_data()) + its.filled);
  its.filled += count;
  return OkStatus();
}

Status ConstantPieces::Import(tensorflow::GraphDef* def, Graph* graph) {
  std::vector<std::pair<std::string, Tensor>> values;
  for (tensorflow::NodeDef& node : *def->mutable_node()) {
    if (!HasMark(node)) continue;
    const OpDef* const op = graph->registry().FindOp(node.op());
    if (op == nullptr || !op->is_constant) {
      return InNode(InvalidArgument("only the value of a constant comes in pieces"), node.name());
    }
    node.mutable_attr()->erase(kInPieces);
    const auto found = arrivings_.find(node.name());
    if (found == arrivings_.end() || found->second.filled != BytesOf(found->second.value)) {
      return InNode(InvalidArgument("the value of the constant is incomplete"), node.name());
    }
    const auto placeholder = node.attr().find("value");
    if (placeholder == node.attr().end() ||
        placeholder->second.tensor().dtype() != Number(found->second.value.dtype())) {
      return InNode(InvalidArgument("the constant's value is of another type"), node.name());
    }
    values.emplace_back(node.name(), std::move(found->second.value));
    arrivings_.erase(found);
  }
  RETURN_IF_ERROR(ImportGraph(*def, graph));
  for (auto& [name, value] : values) {
    Node* const node = graph->FindNode(name);
    if (node == nullptr || !node->op().is_constant) {
      return InNode(InvalidArgument("the constant is not in the graph"), name);
    }
    graph->set_attr(node, "value", value);
  }
  return OkStatus();
}

}  // namespace penstock
