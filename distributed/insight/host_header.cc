// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/host_header.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace penstock {
namespace {

bool IsNumeric(const std::string& host) {
  in6_addr address = {};  // large enough for IPv4 and IPv6
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// Returns the host without the port: "::1" for "[::1]:80" and "[::1]", "a.example" for
// "a.example.:80".
std::string HostOf(string_view header) {
  if (absl::ConsumePrefix(&header, "[")) return std::string(header.substr(0, header.find(']')));
  return std::string(absl::StripSuffix(header.substr(0, header.find(':')), "."));
}

}  // namespace

Status CheckHostHeader(const std::string& header, const std::vector<std::string>& names) {
  if (header.empty()) return OkStatus();
  const std::string host = HostOf(header);
  const auto is_host = [&](const std::string& name) { return absl::EqualsIgnoreCase(name, host); };
  if (IsNumeric(host) || is_host("localhost") || std::any_of(names.begin(), names.end(), is_host)) {
    return OkStatus();
  }
  return PermissionDenied("this task is not called '", host,
                          "'. If it is, start it with --status_hosts=", host,
                          "; or ask for it by its address in numbers");
}

}  // namespace penstock
