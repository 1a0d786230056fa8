// SPDX-License-Identifier: Apache-2.0
//
// Writes the state of a cluster as one self-contained HTML page: the tables of `penstock status`
// and the findings of `penstock why`. The page reloads itself every few seconds.
#pragma once

#include <string>

#include "proto/penstock/insight.pb.h"

namespace penstock {

std::string StatusPage(const wire::ClusterReport& cluster);

}  // namespace penstock
