// SPDX-License-Identifier: Apache-2.0
//
// The versions that Penstock reports: its own version, and the version of the graphs that it
// exports.
#pragma once

namespace penstock {

constexpr char kVersion[] = "0.1.0";

// The field versions.producer of exported GraphDefs: that of TensorFlow 1.0. TensorFlow infers
// shapes when it imports graphs of this version; for later versions it only rejects more ops.
constexpr int kGraphDefProducer = 22;

}  // namespace penstock
