// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace penstock {

// The version of proto/penstock/worker.proto. Two tasks of one cluster must agree.
inline constexpr int kProtocolVersion = 3;

// The name of the master's task, in the trailing metadata of an answer to CreateSession: for the
// client's errors.
inline constexpr char kMasterTaskMetadata[] = "penstock-task";

}  // namespace penstock
