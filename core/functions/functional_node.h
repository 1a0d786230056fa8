// SPDX-License-Identifier: Apache-2.0
//
// Reads the attributes of functional nodes, such as If and While, and names tensors.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {

inline StatusOr<const tensorflow::NameAttrList*> FunctionAttr(const tensorflow::NodeDef& node,
                                                              const std::string& name) {
  const auto found = node.attr().find(name);
  if (found != node.attr().end() && found->second.value_case() == tensorflow::AttrValue::kFunc) {
    return &found->second.func();
  }
  return InvalidArgument("attribute '", name, "' is no function");
}

// Returns no types if the attribute is missing.
inline std::vector<tensorflow::DataType> TypesAttr(const tensorflow::NodeDef& node,
                                                   const char* name) {
  std::vector<tensorflow::DataType> types;
  const auto found = node.attr().find(name);
  if (found == node.attr().end()) return types;
  for (const int type : found->second.list().type()) {
    types.push_back(static_cast<tensorflow::DataType>(type));
  }
  return types;
}

inline std::string Output(const std::string& node, size_t index) {
  return StrCat(node, ":", index);
}
inline std::string Control(const std::string& node) { return StrCat("^", node); }

}  // namespace penstock
