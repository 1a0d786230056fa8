// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/at_node.h"

#include "absl/strings/match.h"

namespace penstock {

Status AtNode(const Status& status, string_view node) {
  if (status.ok() || absl::StrContains(status.message(), "{{node ")) return status;
  Status at(status.code(), StrCat(status.message(), "\n\t [[{{node ", node, "}}]]"));
  status.ForEachPayload(
      [&at](string_view url, const absl::Cord& payload) { at.SetPayload(url, payload); });
  return at;
}

}  // namespace penstock
