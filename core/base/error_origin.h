// SPDX-License-Identifier: Apache-2.0
//
// The origin of an error: the node that caused it, and its task. Both are payloads of the Status,
// so code that handles the error need not parse its text. Annotate keeps payloads, and so do errors
// that travel between tasks (distributed/calls/status_proto.h).
//
// All functions return an OK status as it is.
#pragma once

#include <string>

#include "core/base/status.h"

namespace penstock {

// Records which node failed and replaces any node recorded before. The text stays.
Status WithNode(Status status, string_view node);
// Does the same as WithNode, and puts the node in front of the text: "node 'NAME': text".
Status InNode(const Status& status, string_view node);
// Returns the recorded node, or "" if there is none.
std::string FailedNode(const Status& status);

// Records which task failed ("/job:ps/replica:0/task:1") and replaces any task recorded before. The
// text stays. A master calls it for a step that has several tasks, or that has lost its task.
Status WithTask(Status status, string_view task);
// Returns the recorded task, or "" if there is none.
std::string FailedTask(const Status& status);

// Appends the recorded node to the text, in the form that TensorFlow's clients look for:
// "text\n\t [[{{node NAME}}]]". Does nothing if the text shows a node already, or if none is
// recorded.
Status ShowNode(const Status& status);
// Returns the error of a node that was running: records the node and shows it in the text. If the
// text shows a node already, that node failed first and stays.
Status AtNode(const Status& status, string_view node);

// Copies the recorded node and task, and all other payloads of `cause`, to `status`, a consequence
// of `cause`.
Status WithOriginOf(const Status& cause, Status status);
// Returns the same code and payloads with another text.
Status WithMessage(const Status& status, string_view message);

}  // namespace penstock
