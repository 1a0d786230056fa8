// SPDX-License-Identifier: Apache-2.0
//
// Looks for mistakes on this host and in the process's own configuration: environment variables,
// the port, the checkpoint directory. Blocks for as long as the file system does.
#pragma once

#include <functional>
#include <string>

#include "core/base/env.h"
#include "distributed/cluster/cluster_spec.h"
#include "distributed/doctor/finding.h"

namespace penstock {

// As getenv; "" if a variable is not set.
using Variables = std::function<std::string(const std::string& name)>;

// Proxies, and a TF_CONFIG that says otherwise than the flags that `config` comes from.
Findings ExamineVariables(const TaskConfig& config, const Variables& variables);

// Whether the task of `config` could listen; nothing if config.job is empty. `runs`: it does
// already, so that its port is taken by itself.
Findings ExamineListening(const TaskConfig& config, bool runs);

// Whether checkpoints can be written to `directory`, which is made if it is not there: a file is
// written, synced, renamed and removed.
Findings ExamineCheckpoints(const std::string& directory, const ClusterSpec& cluster, Env& env);

}  // namespace penstock
