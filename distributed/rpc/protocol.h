// SPDX-License-Identifier: Apache-2.0
//
// The version and the metadata of calls between tasks: both ends must have the same.
#pragma once

namespace penstock {

// The version of proto/penstock/worker.proto. All tasks of a cluster must have the same.
inline constexpr int kProtocolVersion = 3;

// The trailing metadata of an answer to CreateSession that names the master's task, for the
// client's error texts.
inline constexpr char kMasterTaskMetadata[] = "penstock-task";

}  // namespace penstock
