// SPDX-License-Identifier: Apache-2.0
//
// The origin of an error: the node and the task that made it, as payloads of its Status, so that
// code which handles the error need not look for them in its text. Annotate keeps payloads, and so
// do errors that travel between tasks (distributed/rpc/calls/status_proto.h).
//
// All functions return an OK status as it is.
#pragma once

#include <string>

#include "core/base/status.h"

namespace penstock {

// Notes which node failed, in place of what was noted before. The text stays.
Status WithNode(Status status, string_view node);
// The same with the node in front of the text: "node 'NAME': text".
Status InNode(const Status& status, string_view node);
// "" if no node was noted.
std::string FailedNode(const Status& status);

// Appends the noted node to the text, in the form that TensorFlow's clients look for:
// "text\n\t [[{{node NAME}}]]". Does nothing if the text shows a node already, or none was noted.
Status ShowNode(const Status& status);
// The error of a node that was running: notes and shows it, unless the text shows one already,
// which is then the node that failed first.
Status AtNode(const Status& status, string_view node);

// Notes which task failed ("/job:ps/replica:0/task:1"), unless one was noted before. The text
// stays.
Status WithTask(Status status, string_view task);
// "" if no task was noted.
std::string FailedTask(const Status& status);

// Notes all that was noted in `cause`, which `status` is a consequence of.
Status WithOriginOf(const Status& cause, Status status);
// The same code and payloads with another text.
Status WithMessage(const Status& status, string_view message);

}  // namespace penstock
