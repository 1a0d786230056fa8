// SPDX-License-Identifier: Apache-2.0
//
// Timeline labels: the text by which TensorFlow's StepStats and its timeline describe a row. Only
// code that reads or writes this message needs labels; other code reads the fields of NodeStats.
#pragma once

#include <string>

#include "core/runtime/step_stats.h"

namespace penstock {

// Returns "NAME = Op(IN1, IN2:1, ^CONTROL)". The row of a _Send or _Recv also has the edge and the
// consumer's device: "_send_w_0 = _Send(w, edge_12_w:0 @DEVICE)". The row of a transfer
// (kTransferStats) is "[BYTESB] EDGE from DEVICE to DEVICE". The label of another row without an op
// is the node's name.
std::string TimelineLabel(const NodeStats& stats);

// Sets op, inputs and transfer of `*stats` from a label that TimelineLabel made for a row with the
// same `node`. Leaves them unchanged if `label` has another form, because labels that other
// programs made may differ.
void ParseTimelineLabel(string_view label, NodeStats* stats);

}  // namespace penstock
