// SPDX-License-Identifier: Apache-2.0
//
// SessionOptions as the ConfigProto of TensorFlow's session protocol, and back.
#pragma once

#include <string>
#include <vector>

#include "distributed/session/session.h"

namespace tensorflow {
class ConfigProto;
}

namespace penstock {

// SessionOptions::bfloat16_transfers is graph_options.enable_bfloat16_sendrecv;
// SessionOptions::disabled_passes travel as parameter "disabled_passes" of a custom optimizer
// "penstock" (graph_options.rewrite_options.custom_optimizers).
void ToProto(const SessionOptions& options, tensorflow::ConfigProto* config);
// Beside that, `constant_folding` and `common_subgraph_elimination` OFF disable "fold" and "merge",
// and opt_level L0 all optional passes. Custom optimizers of other names are another runtime's.
SessionOptions FromProto(const tensorflow::ConfigProto& config);
// Returns the fields that `config` sets and that have no effect here, by their paths
// ("graph_options.enable_recv_scheduling"), in order. docs/session_options.md says why.
std::vector<std::string> OptionsWithoutEffect(const tensorflow::ConfigProto& config);

}  // namespace penstock
