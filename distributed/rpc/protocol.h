// SPDX-License-Identifier: Apache-2.0
//
// The version and the metadata of calls between tasks, which both ends must agree on.
#pragma once

namespace penstock {

// The version of proto/penstock/worker.proto. All tasks of a cluster must have the same version.
inline constexpr int kProtocolVersion = 4;

// The trailing metadata of an answer to CreateSession that names the master's task, for the
// client's error texts.
inline constexpr char kMasterTaskMetadata[] = "penstock-task";

// The metadata of a RunStep that only ends its partial run, because the client has cancelled an
// instalment: TensorFlow's messages have no field for it.
inline constexpr char kEndsPartialRunMetadata[] = "penstock-ends-partial-run";

}  // namespace penstock
