// SPDX-License-Identifier: Apache-2.0
//
// Converts SessionOptions to and from the ConfigProto of TensorFlow's session protocol, and reads
// the server's default ConfigProto (--default_session_config).
#pragma once

#include <string>

#include "core/base/status.h"
#include "distributed/session/session.h"

namespace tensorflow {
class ConfigProto;
}

namespace penstock {

// Writes all options. bfloat16_transfers becomes graph_options.enable_bfloat16_sendrecv;
// disabled_passes, placement and memory_limit become parameters of these names of a custom
// optimizer "penstock" (graph_options.rewrite_options.custom_optimizers).
void ToProto(const SessionOptions& options, tensorflow::ConfigProto* config);
// InvalidArgument if a parameter of the custom optimizer "penstock" is malformed: if
// disabled_passes is no list of strings.
Status CheckParameters(const tensorflow::ConfigProto& config);
// Reads what ToProto writes, and these settings of TensorFlow: `constant_folding`,
// `common_subgraph_elimination`, `arithmetic_optimization` and `remapping` OFF disable "fold",
// "merge", "simplify" and "fuse", and opt_level L0 disables the optional passes that no other field
// switches on. Ignores custom optimizers of other names, which are for other runtimes
// (options_without_effect.h names them).
// REQUIRES: CheckParameters returns OK.
SessionOptions FromProto(const tensorflow::ConfigProto& config);

// Parses a ConfigProto in text form, a server's --default_session_config. Fields that are not known
// are ignored. InvalidArgument if the text is malformed.
StatusOr<tensorflow::ConfigProto> ParseSessionConfig(const std::string& text);
// Returns the number of threads on which a server with this default config runs kernels: the larger
// of intra_op_parallelism_threads and inter_op_parallelism_threads, because one pool serves for
// both. Returns 0, a thread per core, if one of them is 0. A negative number counts as 1.
// InvalidArgument if one is above 4096, or the config is malformed.
StatusOr<int> NumThreadsOf(const std::string& default_session_config);

}  // namespace penstock
