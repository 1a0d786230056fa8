// SPDX-License-Identifier: Apache-2.0
//
// Reports the state of one task: its sessions, the steps that run in it and what they wait for, the
// resources it keeps, and how many bytes it has sent to each other task.
#pragma once

#include "distributed/task/task.h"
#include "proto/penstock/insight.pb.h"

namespace penstock {

// Locks what it reads one by one, for moments: different parts may be of different moments, and
// running steps are not held up. REQUIRES that `task` has started.
wire::TaskReport ReportTask(Task& task, Env& env);

}  // namespace penstock
