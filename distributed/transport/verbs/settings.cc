// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/settings.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace penstock {
namespace {

constexpr VerbsSettingInfo kInfos[] = {
    {"device", "a name that ibv_devices lists",
     "RDMA device; by default the first that has an active port"},
    {"port", "0 to 255", "Port of the RDMA device; 0 (default): the first that is active"},
    {"gid_index", "-1 to 65535",
     "Index of the port's address (GID); -1 (default): the RoCE v2 address of an IPv4 network"},
    {"mtu", "0, 256, 512, 1024, 2048 or 4096",
     "Bytes of a packet; 0 (default): the lower MTU of the two ports"},
    {"queue_depth", "64 to 1024", "Receives that each queue pair keeps posted; default 256"},
    {"timeout", "8 to 18",
     "A packet is sent again when it is not acknowledged within 4.096 us * 2^timeout; default 17, "
     "which is 0.54 s"},
    {"retry_count", "0 to 6", "How often a packet is sent again; default 6"},
    {"service_level", "0 to 15", "InfiniBand's service level, or RoCE's priority; default 0"},
    {"traffic_class", "0 to 255", "Traffic class; RoCE v2 derives the DSCP from it; default 0"},
};

struct Number {
  const char* name;
  int VerbsSettings::*field;
  int min, max;
};
constexpr Number kNumbers[] = {
    {"port", &VerbsSettings::port, 0, 255},
    {"gid_index", &VerbsSettings::gid_index, -1, 65535},
    {"mtu", &VerbsSettings::mtu, 0, 4096},
    {"queue_depth", &VerbsSettings::queue_depth, 64, 1024},
    {"timeout", &VerbsSettings::timeout, 8, 18},
    {"retry_count", &VerbsSettings::retry_count, 0, 6},
    {"service_level", &VerbsSettings::service_level, 0, 15},
    {"traffic_class", &VerbsSettings::traffic_class, 0, 255},
};

bool IsMtu(int bytes) {
  return bytes == 0 || (bytes >= 256 && bytes <= 4096 && (bytes & (bytes - 1)) == 0);
}

Status Set(const std::string& name, const std::string& value, VerbsSettings* settings) {
  if (name == "device") {
    settings->device = value;
    return OkStatus();
  }
  const auto number = std::find_if(std::begin(kNumbers), std::end(kNumbers),
                                   [&](const Number& n) { return n.name == name; });
  const auto info = std::find_if(std::begin(kInfos), std::end(kInfos),
                                 [&](const VerbsSettingInfo& i) { return i.name == name; });
  if (number == std::end(kNumbers) || info == std::end(kInfos)) {
    return InvalidArgument(VerbsFlag(name), ": there is no such setting");
  }
  int parsed = 0;
  const bool valid = absl::SimpleAtoi(value, &parsed) && parsed >= number->min &&
                     parsed <= number->max && (name != "mtu" || IsMtu(parsed));
  if (!valid) {
    return InvalidArgument(VerbsFlag(name), " (or ", VerbsVariable(name), "): '", value,
                           "' is not valid; write ", info->range);
  }
  settings->*number->field = parsed;
  return OkStatus();
}

}  // namespace

absl::Span<const VerbsSettingInfo> AllVerbsSettings() { return kInfos; }

std::string VerbsVariable(string_view name) {
  return StrCat("PENSTOCK_VERBS_", absl::AsciiStrToUpper(name));
}

std::string VerbsFlag(string_view name) { return StrCat("--verbs_", name); }

Status CheckVerbsSetting(const std::string& name, const std::string& value) {
  VerbsSettings ignored;
  return Set(name, value, &ignored);
}

StatusOr<VerbsSettings> VerbsSettings::Parse(const Lookup& lookup) {
  VerbsSettings settings;
  for (const VerbsSettingInfo& info : kInfos) {
    const std::optional<std::string> value = lookup(info.name);
    if (value.has_value()) RETURN_IF_ERROR(Set(info.name, *value, &settings));
  }
  return settings;
}

StatusOr<VerbsSettings> VerbsSettings::FromEnvironment() {
  return Parse([](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(VerbsVariable(name).c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  });
}

}  // namespace penstock
