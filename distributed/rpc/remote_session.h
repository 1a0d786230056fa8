// SPDX-License-Identifier: Apache-2.0
//
// NewRemoteSession of distributed/session/session.h, with limits that tests lower.
#pragma once

#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/graph/graph_pieces.h"
#include "distributed/session/session.h"

namespace penstock {

// Uploads graphs above `limits` in parts (graph_upload.h).
StatusOr<std::unique_ptr<SessionInterface>> NewRemoteSession(const std::string& target,
                                                             const SessionOptions& options,
                                                             Env& env, const PieceLimits& limits);

}  // namespace penstock
