// SPDX-License-Identifier: Apache-2.0
#include "client/unsaved_stream.h"

#include <set>
#include <vector>

namespace penstock::client {
namespace {

bool DrawsFromUnsavedStream(const Node& node) {
  if (node.op().seedless) return true;
  return node.op().stateful && node.attr<int64_t>("seed") != nullptr &&
         node.attr<int64_t>("seed2") != nullptr;
}

}  // namespace

std::string FindUnsavedStream(const Program& program, Output train) {
  if (!train.valid()) return "";
  const Node* const end = program.NodeOf(train);
  std::set<const Node*> seen = {end};
  std::vector<const Node*> left = {end};
  while (!left.empty()) {
    const Node* const node = left.back();
    left.pop_back();
    if (DrawsFromUnsavedStream(*node)) {
      return StrCat("'", node->name(), "' (", node->op_name(), ")");
    }
    const auto add = [&](const Node* source) {
      if (source != nullptr && seen.insert(source).second) left.push_back(source);
    };
    for (const Endpoint& input : node->inputs()) add(input.node);
    for (const Node* control : node->control_inputs()) add(control);
  }
  return "";
}

}  // namespace penstock::client
