// SPDX-License-Identifier: Apache-2.0
//
// Reports the state of one task: its sessions, the steps that run in it and their waits, the
// resources it keeps, and how many bytes it has sent to each other task.
#pragma once

#include "distributed/task/task.h"
#include "proto/penstock/insight.pb.h"

namespace penstock {

// Takes the locks of the task one after the other, each for a moment, so as not to delay running
// steps. Different fields may therefore come from different moments.
// REQUIRES: `task` has started.
wire::TaskReport ReportTask(Task& task, Env& env);

}  // namespace penstock
