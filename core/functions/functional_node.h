// SPDX-License-Identifier: Apache-2.0
//
// Reads the attributes of functional nodes, such as If and While, and names tensors.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace tensorflow {
enum DataType : int;
class NameAttrList;
class NodeDef;
}  // namespace tensorflow

namespace penstock {

// Returns the function in the attribute `name`; InvalidArgument if it holds none.
StatusOr<const tensorflow::NameAttrList*> FunctionAttr(const tensorflow::NodeDef& node,
                                                       const std::string& name);

// Returns the types in the attribute `name`; none if it is missing.
std::vector<tensorflow::DataType> TypesAttr(const tensorflow::NodeDef& node, const char* name);

inline std::string Output(const std::string& node, size_t index) {
  return StrCat(node, ":", index);
}
inline std::string Control(const std::string& node) { return StrCat("^", node); }

}  // namespace penstock
