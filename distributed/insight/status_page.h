// SPDX-License-Identifier: Apache-2.0
//
// The state of a cluster as one page of HTML, without references to anything else: what `penstock
// status` and the findings of `penstock why` say. It loads itself again every few seconds.
#pragma once

#include <string>

#include "proto/penstock/insight.pb.h"

namespace penstock {

std::string StatusPage(const wire::ClusterReport& cluster);

}  // namespace penstock
