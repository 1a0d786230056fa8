// SPDX-License-Identifier: Apache-2.0
//
// OptionsWithoutEffect: returns the options in a message of TensorFlow's protocol that have no
// effect in Penstock. A server names them in its log instead of dropping them silently.
// docs/session_options.md gives the reasons.
#pragma once

#include <string>
#include <vector>

namespace tensorflow {
class CallableOptions;
class ConfigProto;
class RunOptions;
}  // namespace tensorflow

namespace penstock {

// Each returns the fields that are set and have no effect, as paths below the message
// ("graph_options.enable_recv_scheduling"), in order of their numbers. A field that this version
// does not know is "field N" of its message.
std::vector<std::string> OptionsWithoutEffect(const tensorflow::ConfigProto& config);
std::vector<std::string> OptionsWithoutEffect(const tensorflow::RunOptions& options);
std::vector<std::string> OptionsWithoutEffect(const tensorflow::CallableOptions& options);

}  // namespace penstock
