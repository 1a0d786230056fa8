// SPDX-License-Identifier: Apache-2.0
#include "core/op/edge_name.h"

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace penstock {
namespace {

constexpr string_view kPrefix = "edge_";

std::string Tensor(const EdgeName& edge) {
  return edge.output == EdgeName::kControl ? StrCat("^", edge.node)
                                           : StrCat(edge.node, ":", edge.output);
}

}  // namespace

std::optional<EdgeName> EdgeName::Parse(string_view text) {
  EdgeName edge;
  if (!absl::ConsumePrefix(&text, kPrefix)) return std::nullopt;
  const size_t id_end = text.find('_');
  if (id_end == string_view::npos || !absl::SimpleAtoi(text.substr(0, id_end), &edge.id)) {
    return std::nullopt;
  }
  text.remove_prefix(id_end + 1);
  if (absl::ConsumePrefix(&text, "^")) {
    edge.output = kControl;
  } else {
    const size_t colon = text.rfind(':');
    if (colon == string_view::npos || !absl::SimpleAtoi(text.substr(colon + 1), &edge.output) ||
        edge.output < 0) {
      return std::nullopt;
    }
    text = text.substr(0, colon);
  }
  if (text.empty()) return std::nullopt;
  edge.node = std::string(text);
  return edge;
}

std::string EdgeName::ToString() const { return StrCat(kPrefix, id, "_", Tensor(*this)); }

std::string TensorOf(string_view edge_name) {
  const std::optional<EdgeName> edge = EdgeName::Parse(edge_name);
  return edge.has_value() ? Tensor(*edge) : std::string(edge_name);
}

}  // namespace penstock
