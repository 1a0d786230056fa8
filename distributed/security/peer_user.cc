// SPDX-License-Identifier: Apache-2.0
#include "distributed/security/peer_user.h"

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

// Formats an address as /proc/net/tcp does: each 32-bit word as a hexadecimal number in this
// machine's byte order.
template <size_t words>
std::string HexText(const void* address) {
  uint32_t word[words];
  std::memcpy(word, address, sizeof(word));
  std::string text;
  for (const uint32_t w : word) absl::StrAppendFormat(&text, "%08X", w);
  return text;
}

// The wanted connection: its two ends, in the form of the lists in /proc: "0100007F:A324". Both
// ends have to match: the peer may have a second connection from the same port to another address
// of this host, where another user's process listens.
struct Wanted {
  std::string peer, own;
};

// Returns the user at the peer's end of the connection, if a list of /proc has it.
std::optional<uid_t> FindUser(const std::string& list, const Wanted& wanted) {
  for (const absl::string_view line : absl::StrSplit(list, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipWhitespace());
    constexpr size_t kLocal = 1, kRemote = 2, kState = 3, kUser = 7, kInode = 9;
    if (fields.size() <= kInode || fields[kLocal] != wanted.peer) continue;
    if (fields[kRemote] != wanted.own || fields[kState] != kEstablished) continue;
    uint32_t user = 0;
    // Skip connections without an inode: no process owns them at this moment, and their entry may
    // name root.
    if (fields[kInode] != "0" && absl::SimpleAtoi(fields[kUser], &user)) return user;
  }
  return std::nullopt;
}

std::string PortText(int port) { return absl::StrFormat(":%04X", port); }

// Returns an IPv4 address in the form ::ffff:a.b.c.d, which IPv6 sockets show for an IPv4 peer.
in6_addr Mapped(const in_addr& v4) {
  in6_addr v6 = {};
  v6.s6_addr[10] = v6.s6_addr[11] = 0xff;
  std::memcpy(&v6.s6_addr[12], &v4, sizeof(v4));
  return v6;
}

}  // namespace

StatusOr<uid_t> LoopbackPeerUser(const std::string& peer_host, int peer_port,
                                 const std::string& own_host, int own_port) {
  in_addr peer4, own4;
  in6_addr peer6, own6;
  const bool is_v4 = inet_pton(AF_INET, peer_host.c_str(), &peer4) == 1 &&
                     inet_pton(AF_INET, own_host.c_str(), &own4) == 1;
  if (!is_v4 && (inet_pton(AF_INET6, peer_host.c_str(), &peer6) != 1 ||
                 inet_pton(AF_INET6, own_host.c_str(), &own6) != 1)) {
    return InvalidArgument("'", peer_host, "' and '", own_host,
                           "' are not addresses in numbers, of one family");
  }
  const std::string peer_port_text = PortText(peer_port), own_port_text = PortText(own_port);
  if (is_v4) {
    ASSIGN_OR_RETURN(const std::string list, Env::Real().ReadFile("/proc/net/tcp"));
    const auto user =
        FindUser(list, {HexText<1>(&peer4) + peer_port_text, HexText<1>(&own4) + own_port_text});
    if (user.has_value()) return *user;
    peer6 = Mapped(peer4);
    own6 = Mapped(own4);
  }
  const auto list = Env::Real().ReadFile("/proc/net/tcp6");
  const auto user = FindUser(
      list.value_or(""), {HexText<4>(&peer6) + peer_port_text, HexText<4>(&own6) + own_port_text});
  if (user.has_value()) return *user;
  return NotFound("no connection from ", peer_host, " port ", peer_port);
}

Status CheckLoopbackPeer(const std::string& peer_host, int peer_port, const std::string& own_host,
                         int own_port) {
  const StatusOr<uid_t> user = LoopbackPeerUser(peer_host, peer_port, own_host, own_port);
  if (!user.ok()) {
    return PermissionDenied("the system does not say whose process this is: ",
                            user.status().message());
  }
  if (*user == geteuid() || *user == 0) return OkStatus();
  return PermissionDenied("the process belongs to user ", *user, ", the task to user ", geteuid());
}

}  // namespace penstock
