// SPDX-License-Identifier: Apache-2.0
#include "core/graph/tensor_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "core/graph/graph.h"

namespace penstock {

bool IsValidNodeName(string_view name) {
  const auto first = [](char c) { return absl::ascii_isalnum(c) || c == '.' || c == '_'; };
  if (name.empty() || !first(name[0])) return false;
  for (char c : name) {
    if (!first(c) && c != '\\' && c != '/' && c != '>' && c != '-') return false;
  }
  return true;
}

StatusOr<TensorNameView> TensorNameView::Parse(string_view text) {
  TensorNameView result{.node = text};
  result.control = absl::ConsumePrefix(&result.node, "^");
  const size_t colon = result.node.rfind(':');
  if (colon != string_view::npos && !result.control) {
    const string_view digits = result.node.substr(colon + 1);
    const bool plain = !digits.empty() && absl::ascii_isdigit(digits[0]);
    if (!plain || !absl::SimpleAtoi(digits, &result.index)) {
      return InvalidArgument("'", text, "' is not a tensor name: after ':' must stand the number ",
                             "of an output");
    }
    result.node = result.node.substr(0, colon);
  }
  if (IsValidNodeName(result.node)) return result;
  return InvalidArgument("'", text, "' is not a tensor name: '", result.node,
                         "' is not a valid node name");
}

StatusOr<TensorName> TensorName::Parse(string_view text) {
  ASSIGN_OR_RETURN(const TensorNameView view, TensorNameView::Parse(text));
  return TensorName{.node = std::string(view.node), .index = view.index, .control = view.control};
}

std::string TensorName::ToString() const {
  return control ? StrCat("^", node) : StrCat(node, ":", index);
}

}  // namespace penstock
