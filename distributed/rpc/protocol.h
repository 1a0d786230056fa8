// SPDX-License-Identifier: Apache-2.0
//
// Constants on which both ends of a call between tasks, or of a client's call, must agree beside
// the messages themselves. Raise the version with every change that the previous one would misread.
#pragma once

namespace penstock {

// The version of proto/penstock/worker.proto. All tasks of a cluster must have the same.
inline constexpr int kProtocolVersion = 3;

// The trailing metadata of an answer to CreateSession that names the master's task, for the
// client's error texts.
inline constexpr char kMasterTaskMetadata[] = "penstock-task";

}  // namespace penstock
