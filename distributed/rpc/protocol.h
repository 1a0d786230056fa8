// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace penstock {

// The version of proto/penstock/worker.proto. Two tasks of one cluster must agree.
inline constexpr int kProtocolVersion = 3;

}  // namespace penstock
