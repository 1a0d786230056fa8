// SPDX-License-Identifier: Apache-2.0
//
// VerbsSettings: how the RDMA transport uses the network card. Each setting is a flag (--verbs_mtu)
// and an environment variable (PENSTOCK_VERBS_MTU), which the flag overrides.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "core/base/status.h"

namespace penstock {

struct VerbsSettings {
  std::string device;     // "": the first that has an active port
  int port = 0;           // 1 to 255; 0: the first active port
  int gid_index = -1;     // 0 to 65535; -1: the RoCE v2 address of an IPv4 network, if there is one
  int mtu = 0;            // bytes: 256, 512, 1024, 2048 or 4096; 0: the port's
  int queue_depth = 256;  // receives per queue pair: 64 to 1024
  int timeout = 17;       // 8 to 18: an acknowledgement may take 4.096 us * 2^timeout
  int retry_count = 6;    // 0 to 6; 7 would retry for ever on software devices
  int service_level = 0;  // 0 to 15
  int traffic_class = 0;  // 0 to 255

  // Returns the value of a setting by its name, or nothing if it is not set.
  using Lookup = std::function<std::optional<std::string>(const std::string& name)>;
  // Parses the settings that are set. InvalidArgument names a malformed one and its range.
  static StatusOr<VerbsSettings> Parse(const Lookup& lookup);
  // Parses the environment variables; an empty one counts as not set.
  static StatusOr<VerbsSettings> FromEnvironment();
};

// One line of --help.
struct VerbsSettingInfo {
  const char* name;         // "mtu"
  const char* range;        // "256, 512, 1024, 2048 or 4096"
  const char* description;  // what it means, and its default
};

absl::Span<const VerbsSettingInfo> AllVerbsSettings();
// Returns "PENSTOCK_VERBS_MTU" for "mtu".
std::string VerbsVariable(string_view name);
// Returns "--verbs_mtu" for "mtu".
std::string VerbsFlag(string_view name);
// Returns OK if `value` is valid for the setting `name`, else InvalidArgument, which names the
// setting and its range.
Status CheckVerbsSetting(const std::string& name, const std::string& value);

}  // namespace penstock
