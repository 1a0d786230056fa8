// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace penstock {

// Of proto/penstock/worker.proto. Two tasks of one cluster must agree.
inline constexpr int kProtocolVersion = 2;

}  // namespace penstock
