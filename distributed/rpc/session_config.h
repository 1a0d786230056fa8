// SPDX-License-Identifier: Apache-2.0
//
// Converts SessionOptions to and from the ConfigProto of TensorFlow's session protocol.
#pragma once

#include <string>
#include <vector>

#include "distributed/session/session.h"

namespace tensorflow {
class ConfigProto;
}

namespace penstock {

// Writes SessionOptions::bfloat16_transfers as graph_options.enable_bfloat16_sendrecv, and
// SessionOptions::disabled_passes as parameter "disabled_passes" of a custom optimizer
// "penstock" (graph_options.rewrite_options.custom_optimizers).
void ToProto(const SessionOptions& options, tensorflow::ConfigProto* config);
// Also reads these settings of TensorFlow: `constant_folding` and `common_subgraph_elimination` OFF
// disable "fold" and "merge", and opt_level L0 disables all optional passes. Ignores custom
// optimizers of other names, which are for other runtimes.
SessionOptions FromProto(const tensorflow::ConfigProto& config);
// Returns the fields that `config` sets and that have no effect here, as paths
// ("graph_options.enable_recv_scheduling"), in order. docs/session_options.md gives the
// reasons.
std::vector<std::string> OptionsWithoutEffect(const tensorflow::ConfigProto& config);

}  // namespace penstock
