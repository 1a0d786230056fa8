// SPDX-License-Identifier: Apache-2.0
//
// Keeps other web sites out of the status page. An attacker can make the name of a site resolve
// to this host (DNS rebinding), so that browsers of the site's visitors send requests here. Such
// requests name the site in the Host header.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace penstock {

// Returns OK if `header` ("HOST" or "HOST:PORT") is a numeric address, "localhost" or one of
// `names`, ignoring case; or if it is "", which no browser sends. Else PermissionDenied, which
// names --status_hosts.
Status CheckHostHeader(const std::string& header, const std::vector<std::string>& names);

}  // namespace penstock
