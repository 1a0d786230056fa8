// SPDX-License-Identifier: Apache-2.0
//
// ResetOnTask: drops resources of another task, for Master::Reset.
#pragma once

#include <string>
#include <vector>

#include "core/base/done.h"
#include "distributed/master/task_wait.h"

namespace penstock {

// Drops the resources in `containers` on the task. If the task has two replicas, calls the one that
// serves; Unavailable if neither serves.
void ResetOnTask(const TaskWait::Task& task, const std::vector<std::string>& containers, Done done);

}  // namespace penstock
