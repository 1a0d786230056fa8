// SPDX-License-Identifier: Apache-2.0
//
// What a task says of itself: its sessions, the steps that run in it and what they wait for, what
// it keeps, whom it has sent how much.
#pragma once

#include "distributed/task/task.h"
#include "proto/penstock/insight.pb.h"

namespace penstock {

// Locks what it reads one by one, for moments: different parts may be of different moments, and
// running steps are not held up. REQUIRES that `task` has started.
wire::TaskReport ReportTask(Task& task, Env& env);

}  // namespace penstock
