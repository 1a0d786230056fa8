// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/security/peer_user.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/base/env.h"

namespace penstock {
namespace {

constexpr absl::string_view kEstablished = "01";

// As the system's lists write it: each 32-bit word as a number of this machine.
template <size_t words>
std::string InWords(const void* address) {
  uint32_t word[words];
  std::memcpy(word, address, sizeof(word));
  std::string text;
  for (const uint32_t w : word) absl::StrAppendFormat(&text, "%08X", w);
  return text;
}

struct Wanted {
  std::string peer;  // "0100007F:A324"
  std::string own_port;
};

// The user of the first connection in a list of /proc that is wanted.
std::optional<uid_t> FindUser(const std::string& list, const Wanted& wanted) {
  for (const absl::string_view line : absl::StrSplit(list, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipWhitespace());
    constexpr size_t kLocal = 1, kRemote = 2, kState = 3, kUser = 7;
    if (fields.size() <= kUser || fields[kLocal] != wanted.peer) continue;
    const absl::string_view remote_port = fields[kRemote].substr(fields[kRemote].find(':') + 1);
    uint32_t user = 0;
    // A connection that is being closed belongs to nobody any more, and says root.
    if (remote_port == wanted.own_port && fields[kState] == kEstablished &&
        absl::SimpleAtoi(fields[kUser], &user)) {
      return user;
    }
  }
  return std::nullopt;
}

}  // namespace

StatusOr<uid_t> LoopbackPeerUser(const std::string& peer_host, int peer_port, int own_port) {
  in_addr v4;
  in6_addr v6;
  const bool is_v4 = inet_pton(AF_INET, peer_host.c_str(), &v4) == 1;
  if (!is_v4 && inet_pton(AF_INET6, peer_host.c_str(), &v6) != 1) {
    return InvalidArgument("'", peer_host, "' is not an address in numbers");
  }
  const std::string port = absl::StrFormat("%04X", own_port);
  const std::string peer = absl::StrFormat(":%04X", peer_port);
  if (is_v4) {
    ASSIGN_OR_RETURN(const std::string list, Env::Real().ReadFile("/proc/net/tcp"));
    const auto user = FindUser(list, {InWords<1>(&v4) + peer, port});
    if (user.has_value()) return *user;
    // A socket for both families.
    v6 = {};
    v6.s6_addr[10] = v6.s6_addr[11] = 0xff;
    std::memcpy(&v6.s6_addr[12], &v4, sizeof(v4));
  }
  const auto list = Env::Real().ReadFile("/proc/net/tcp6");
  const auto user = FindUser(list.value_or(""), {InWords<4>(&v6) + peer, port});
  if (user.has_value()) return *user;
  return NotFound("no connection from ", peer_host, " port ", peer_port);
}

Status CheckLoopbackPeer(const std::string& peer_host, int peer_port, int own_port) {
  const StatusOr<uid_t> user = LoopbackPeerUser(peer_host, peer_port, own_port);
  if (!user.ok()) {
    return PermissionDenied("the system does not say whose process this is: ",
                            user.status().message());
  }
  if (*user == geteuid() || *user == 0) return OkStatus();
  return PermissionDenied("the process belongs to user ", *user, ", the task to user ", geteuid());
}

}  // namespace penstock
