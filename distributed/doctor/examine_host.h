// SPDX-License-Identifier: Apache-2.0
//
// Looks for mistakes on this host and in the process's own configuration: environment variables,
// the port, the limit of open files, the checkpoint directory. May block as long as a call of the
// file system.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/base/env.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/doctor/finding.h"

namespace penstock {

// Looks up a variable like getenv, but returns "" if the variable is not set.
using Variables = std::function<std::string(const std::string& name)>;

// Finds proxies, and a TF_CONFIG that contradicts the flags from which `config` was
// made.
Findings ExamineVariables(const TaskConfig& config, const Variables& variables);

// Checks whether the task of `config` could listen; finds nothing if config.job is empty.
// `runs`: true if the task is already running, so that the task itself uses the port.
Findings ExamineListening(const TaskConfig& config, bool runs);

// Checks whether this process may open enough files for the connections of a cluster's task;
// `limit` is the number of files that it may open. Finds nothing if so.
Findings ExamineFileLimit(const ClusterSpec& cluster, uint64_t limit);
// Returns the number of files that this process may open (RLIMIT_NOFILE).
uint64_t FileLimit();

// Checks that checkpoints can be written to `directory`, which is created if it does not exist:
// writes, syncs, renames and removes a file there.
Findings ExamineCheckpoints(const std::string& directory, const ClusterSpec& cluster, Env& env);

}  // namespace penstock
