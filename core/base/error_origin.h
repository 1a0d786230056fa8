// SPDX-License-Identifier: Apache-2.0
//
// The origin of an error: the node that caused it, and the task of that node. Both are payloads of
// the Status, so code that handles the error need not parse its text. Annotate keeps payloads, and
// errors sent between tasks keep them, too (distributed/calls/status_proto.h).
//
// Each function that returns a Status returns OK if its argument `status` is OK.
#pragma once

#include <string>

#include "core/base/status.h"

namespace penstock {

// Records that `node` failed, and replaces any node recorded before. Leaves the text unchanged.
Status WithNode(Status status, string_view node);
// Does the same as WithNode, and puts the node in front of the text: "node 'NAME': text".
Status InNode(const Status& status, string_view node);
// Returns the recorded node, or "" if there is none.
std::string FailedNode(const Status& status);

// Records that `task` failed ("/job:ps/replica:0/task:1"), and replaces any task recorded before.
// Leaves the text unchanged. A master calls this for a step that runs on several tasks, or whose
// task is lost.
Status WithTask(Status status, string_view task);
// Returns the recorded task, or "" if there is none.
std::string FailedTask(const Status& status);

// Appends the recorded node to the text, in the form that TensorFlow's clients look for:
// "text\n\t [[{{node NAME}}]]". Does nothing if the text shows a node already, or if none is
// recorded.
Status ShowNode(const Status& status);
// Returns the error with which the running node `node` ended: records the node and shows it in the
// text. If the text shows a node already, keeps that one, because it failed first.
Status AtNode(const Status& status, string_view node);

// Copies the recorded node and task, and all other payloads of `cause`, to `status`, a consequence
// of `cause`.
Status WithOriginOf(const Status& cause, Status status);
// Returns a status with the code and payloads of `status` and the text `message`.
Status WithMessage(const Status& status, string_view message);

}  // namespace penstock
