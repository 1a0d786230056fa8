// SPDX-License-Identifier: Apache-2.0
//
// The versions that Penstock reports: its own, and that of the graphs which it writes.
#pragma once

namespace penstock {

constexpr char kVersion[] = "0.1.0";

// The versions.producer of exported GraphDefs: that of TensorFlow 1.0. A reader infers shapes for
// graphs of this version; for later versions it only rejects more ops.
constexpr int kGraphDefProducer = 22;

}  // namespace penstock
