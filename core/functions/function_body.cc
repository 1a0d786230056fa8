// SPDX-License-Identifier: Apache-2.0
#include "core/functions/function_body.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/op/private_attrs.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

using ArgProto = tensorflow::OpDef::ArgDef;
using NodeProto = tensorflow::NodeDef;
using FunctionProto = tensorflow::FunctionDef;

namespace {

// An output of a node of a body, "node:arg:index", or "arg" or "node" alone.
struct BodyTensor {
  std::string node, arg;
  int index = 0;

  static StatusOr<BodyTensor> Parse(const std::string& text) {
    const std::vector<std::string> parts = absl::StrSplit(text, ':');
    BodyTensor tensor{.node = parts[0]};
    if (parts.size() == 3) tensor.arg = parts[1];
    if (parts.size() > 3 || (parts.size() > 1 && (!absl::SimpleAtoi(parts.back(), &tensor.index) ||
                                                  tensor.index < 0))) {
      return InvalidArgument("'", text, "' is no tensor of a function");
    }
    return tensor;
  }
};

// Replaces attributes that name parameters of the function by their values.
Status FillParameters(const AttrMap& values, AttrMap* attrs);
Status FillParameters(const AttrMap& values, tensorflow::AttrValue* attr) {
  if (attr->value_case() == tensorflow::AttrValue::kPlaceholder) {
    const auto found = values.find(attr->placeholder());
    if (found == values.end()) {
      return InvalidArgument("there is no value for parameter '", attr->placeholder(), "'");
    }
    *attr = tensorflow::AttrValue(found->second);
  } else if (attr->value_case() == tensorflow::AttrValue::kFunc) {
    return FillParameters(values, attr->mutable_func()->mutable_attr());
  }
  return OkStatus();
}
Status FillParameters(const AttrMap& values, AttrMap* attrs) {
  for (auto& [name, attr] : *attrs) RETURN_IF_ERROR(FillParameters(values, &attr));
  return OkStatus();
}

// Renames the nodes in the colocation attribute: "loc:@x" refers to the node x of the same body.
// Removes entries that name other nodes.
void RenameColocation(const std::string& prefix, const std::set<std::string>& body,
                      NodeProto* node) {
  const auto found = node->mutable_attr()->find(kColocationAttr);
  if (found == node->mutable_attr()->end()) return;
  tensorflow::AttrValue kept;
  for (const std::string& entry : found->second.list().s()) {
    const std::string with =
        absl::StartsWith(entry, kColocatedWith) ? entry.substr(sizeof(kColocatedWith) - 1) : "";
    if (with.empty()) {
      kept.mutable_list()->add_s(entry);
    } else if (body.count(with) > 0) {
      kept.mutable_list()->add_s(StrCat(kColocatedWith, prefix, "/", with));
    }
  }
  if (kept.list().s_size() > 0) {
    found->second = std::move(kept);
  } else {
    node->mutable_attr()->erase(found);
  }
}

}  // namespace

InputNames::InputNames(const NodeProto& node) {
  for (const std::string& input : node.input()) {
    if (absl::StartsWith(input, "^")) {
      control.push_back(input.substr(1));
    } else {
      data.push_back(input);
    }
  }
}

bool HasNoSource(const NodeProto& node, const std::set<std::string>& arguments) {
  const InputNames inputs(node);
  return inputs.data.empty() &&
         std::all_of(inputs.control.begin(), inputs.control.end(),
                     [&](const std::string& before) { return arguments.count(before) > 0; });
}

FunctionBody::FunctionBody(const FunctionLibrary& library, const FunctionCall& call,
                           const FunctionProto& function)
    : library_(library), call_(call), function_(function) {
  for (const NodeProto& node : function.node_def()) {
    nodes_.emplace(node.name(), &node);
    names_.insert(node.name());
  }
}

Status FunctionBody::BindArguments() {
  const tensorflow::OpDef& signature = function_.signature();
  const std::vector<std::string>& given = call_.inputs.data;
  if (static_cast<int>(given.size()) != signature.input_arg_size()) {
    return InvalidArgument("function '", call_.function, "' takes ", signature.input_arg_size(),
                           " inputs, the call has ", given.size());
  }
  for (int i = 0; i < signature.input_arg_size(); ++i) {
    const ArgProto& arg = signature.input_arg(i);
    if (!arg.number_attr().empty() || !arg.type_list_attr().empty()) {
      return Unimplemented("function '", call_.function, "': argument '", arg.name(),
                           "' stands for several tensors");
    }
    arguments_.emplace(arg.name(), given[i]);
  }
  return OkStatus();
}

std::string FunctionBody::Rename(const std::string& node) const {
  return StrCat(call_.name, "/", node);
}

StatusOr<std::string> FunctionBody::RenameTensor(const std::string& text) const {
  ASSIGN_OR_RETURN(const BodyTensor tensor, BodyTensor::Parse(text));
  const auto argument = arguments_.find(tensor.node);
  if (argument != arguments_.end()) return argument->second;
  const auto node = nodes_.find(tensor.node);
  if (node == nodes_.end()) {
    return InvalidArgument("function '", call_.function, "' has no '", tensor.node, "'");
  }
  int index = tensor.index;
  if (!tensor.arg.empty()) {
    ASSIGN_OR_RETURN(index, library_.OutputIndex(*node->second, tensor.arg, tensor.index));
  }
  return StrCat(Rename(tensor.node), ":", index);
}

// Makes the loop's frame name unique for this call, so that two calls do not share a loop.
void FunctionBody::RenameFrame(NodeProto* node) const {
  const OpDef* const op = library_.registry().FindOp(node->op());
  if (op == nullptr || op->flow != FlowOp::kEnter) return;
  const auto frame = node->mutable_attr()->find("frame_name");
  if (frame != node->mutable_attr()->end()) frame->second.set_s(Rename(frame->second.s()));
}

StatusOr<NodeProto> FunctionBody::Copy(const NodeProto& node) const {
  NodeProto copy = node;
  copy.set_name(Rename(node.name()));
  if (copy.device().empty() && !library_.UsesResources(node)) copy.set_device(call_.device);
  RETURN_IF_ERROR(FillParameters(*call_.attrs, copy.mutable_attr()));
  RenameColocation(call_.name, names_, &copy);
  RenameFrame(&copy);
  copy.clear_input();
  const InputNames inputs(node);
  bool waits = false;  // true if the copy waits for another node of the body
  for (const std::string& input : inputs.data) {
    ASSIGN_OR_RETURN(const std::string renamed, RenameTensor(input));
    copy.add_input(renamed);
    waits |= arguments_.count(input.substr(0, input.find(':'))) == 0;
  }
  for (const std::string& before : inputs.control) {
    if (arguments_.count(before) > 0) continue;  // arguments run before the call
    copy.add_input(StrCat("^", Rename(before)));
    waits = true;
  }
  if (waits) return copy;
  for (const std::string& before : call_.inputs.control) copy.add_input(StrCat("^", before));
  if (!call_.begins.empty() && inputs.data.empty()) copy.add_input(StrCat("^", call_.begins));
  return copy;
}

}  // namespace penstock
