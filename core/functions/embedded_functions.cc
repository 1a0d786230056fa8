// SPDX-License-Identifier: Apache-2.0
#include "core/functions/embedded_functions.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/error_origin.h"
#include "core/functions/function_library.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

using NodeProto = tensorflow::NodeDef;
using FunctionProto = tensorflow::FunctionDef;

// A graph with many nodes that name one large function would otherwise grow without bound.
constexpr int64_t kEmbeddedBytesMax = int64_t{1} << 30;

// The functions that the attributes of one node name.
std::vector<std::string> NamedFunctions(const NodeProto& node) {
  std::vector<std::string> names;
  for (const auto& [name, attr] : node.attr()) {
    if (attr.value_case() == tensorflow::AttrValue::kFunc) names.push_back(attr.func().name());
    for (const auto& function : attr.list().func()) names.push_back(function.name());
  }
  return names;
}

class Embedding {
 public:
  explicit Embedding(const tensorflow::FunctionDefLibrary& library) {
    for (const FunctionProto& function : library.function()) {
      functions_.emplace(function.signature().name(), &function);
    }
  }

  Status Add(NodeProto* node) {
    if (IsFunctional(node->op()) || node->attr().contains(kFunctionsAttr)) return OkStatus();
    const std::set<std::string> needed = Needed(NamedFunctions(*node));
    if (needed.empty()) return OkStatus();
    const std::string& bytes = Serialized(needed);
    bytes_left_ -= static_cast<int64_t>(bytes.size());
    if (bytes_left_ < 0) {
      return ResourceExhausted("the functions of the graph's nodes take more than ",
                               kEmbeddedBytesMax, " bytes");
    }
    (*node->mutable_attr())[kFunctionsAttr].set_s(bytes);
    return OkStatus();
  }

 private:
  // Those of `names` that the library has, and all that they need.
  std::set<std::string> Needed(std::vector<std::string> names) const {
    std::set<std::string> needed;
    while (!names.empty()) {
      const auto found = functions_.find(names.back());
      names.pop_back();
      if (found == functions_.end() || !needed.insert(found->first).second) continue;
      for (const NodeProto& node : found->second->node_def()) {
        names.push_back(node.op());
        for (std::string& name : NamedFunctions(node)) names.push_back(std::move(name));
      }
    }
    return needed;
  }

  // Equal sets give equal bytes, so that equal nodes stay equal.
  const std::string& Serialized(const std::set<std::string>& needed) {
    std::string& bytes = serialized_[needed];
    if (!bytes.empty()) return bytes;
    tensorflow::FunctionDefLibrary library;
    for (const std::string& name : needed) *library.add_function() = *functions_.at(name);
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    library.SerializeToCodedStream(&coded);
    coded.Trim();
    return bytes;
  }

  std::map<std::string, const FunctionProto*> functions_;
  std::map<std::set<std::string>, std::string> serialized_;
  int64_t bytes_left_ = kEmbeddedBytesMax;
};

}  // namespace

bool HoldsFunctions(const tensorflow::GraphDef& graph) {
  if (graph.library().function().empty()) return false;
  for (const NodeProto& node : graph.node()) {
    if (!IsFunctional(node.op()) && !NamedFunctions(node).empty()) return true;
  }
  return false;
}

Status EmbedFunctions(const tensorflow::FunctionDefLibrary& library, tensorflow::GraphDef* graph) {
  Embedding embedding(library);
  for (NodeProto& node : *graph->mutable_node()) {
    RETURN_IF_ERROR(InNode(embedding.Add(&node), node.name()));
  }
  return OkStatus();
}

}  // namespace penstock
