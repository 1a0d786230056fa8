// SPDX-License-Identifier: Apache-2.0
#include "core/op/task_name.h"

#include <utility>

namespace penstock {

StatusOr<TaskName> TaskName::Parse(string_view text) {
  ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(text));
  if (!name.job || !name.replica || !name.task || name.type || name.index) {
    return InvalidArgument("'", text, "' is not the name of a task: expected ",
                           "/job:NAME/replica:N/task:N");
  }
  return TaskName{*std::move(name.job), *name.replica, *name.task};
}

StatusOr<TaskName> TaskName::OfDevice(string_view device) {
  StatusOr<DeviceName> name = DeviceName::Parse(device);
  if (!name.ok() || !name->full()) {
    return InvalidArgument("'", device, "' is not a full device name");
  }
  return TaskName{*std::move(name->job), *name->replica, *name->task};
}

std::string TaskName::ToString() const {
  return DeviceName{.job = job, .replica = replica, .task = task}.ToString();
}

DeviceName TaskName::Device(string_view type, int index) const {
  return {.job = job, .replica = replica, .task = task, .type = std::string(type), .index = index};
}

}  // namespace penstock
