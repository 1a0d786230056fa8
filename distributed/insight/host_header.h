// SPDX-License-Identifier: Apache-2.0
//
// Keeps other web sites out of the status page. A site whose name is made to resolve to this host
// (DNS rebinding) has its visitors' browsers ask here, but they name the site in the Host header.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock {

// OK if `header`, "HOST" or "HOST:PORT", is an address in numbers, "localhost" or one of `names`,
// in capital or small letters; or "", which no browser sends. Else PermissionDenied, which names
// --status_hosts.
Status CheckHostHeader(const std::string& header, const std::vector<std::string>& names);

}  // namespace penstock
