// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/match.h"
#include "core/base/status.h"

namespace penstock {

// The error of a node that could not be compiled or imported, "node 'NAME': text", with the name in
// the form that clients look for as well: "\n\t [[{{node NAME}}]]".
inline Status WithFailingNode(const Status& status) {
  constexpr string_view kBegin = "node '";
  const string_view text(status.message().data(), status.message().size());
  if (status.ok() || !absl::StartsWith(text, kBegin) || absl::StrContains(text, "{{node ")) {
    return status;
  }
  const string_view name =
      text.substr(kBegin.size(), text.find('\'', kBegin.size()) - kBegin.size());
  return Status(status.code(), StrCat(text, "\n\t [[{{node ", name, "}}]]"));
}

}  // namespace penstock
