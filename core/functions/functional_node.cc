// SPDX-License-Identifier: Apache-2.0
#include "core/functions/functional_node.h"

#include "proto/tensorflow/graph.pb.h"

namespace penstock {

StatusOr<const tensorflow::NameAttrList*> FunctionAttr(const tensorflow::NodeDef& node,
                                                       const std::string& name) {
  const auto found = node.attr().find(name);
  if (found != node.attr().end() && found->second.value_case() == tensorflow::AttrValue::kFunc) {
    return &found->second.func();
  }
  return InvalidArgument("attribute '", name, "' is no function");
}

std::vector<tensorflow::DataType> TypesAttr(const tensorflow::NodeDef& node, const char* name) {
  std::vector<tensorflow::DataType> types;
  const auto found = node.attr().find(name);
  if (found == node.attr().end()) return types;
  for (const int type : found->second.list().type()) {
    types.push_back(static_cast<tensorflow::DataType>(type));
  }
  return types;
}

}  // namespace penstock
