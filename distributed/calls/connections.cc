// SPDX-License-Identifier: Apache-2.0
#include "distributed/calls/connections.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

namespace penstock {
namespace {

using Json = nlohmann::json;

// Parses an id: 64-bit numbers are strings in the JSON of protocol buffers.
int64_t IdOf(const Json& ref, const char* name) {
  return std::stoll(ref.at(name).get<std::string>());
}

// Calls `use` with each entry of a list that comes in pages: `get(id)` returns the page that starts
// at the first entry whose id is at least `id`. `use` returns its entry's id.
template <class Get, class Use>
void ForEach(const char* list, Get get, Use use) {
  int64_t next = 0;
  for (bool more = true; more;) {
    const std::unique_ptr<char, void (*)(void*)> text(get(next), gpr_free);
    if (text == nullptr) return;  // the server or socket no longer exists
    const Json page = Json::parse(text.get());
    const auto entries = page.find(list);
    if (entries == page.end()) return;
    more = !entries->empty() && !page.value("end", false);
    for (const Json& entry : *entries) next = use(entry) + 1;
  }
}

}  // namespace

absl::flat_hash_set<std::string> ConnectedClients() {
  absl::flat_hash_set<std::string> clients;
  const auto add = [&](const Json& socket) {
    // The name is "chttp2 ADDRESS".
    const std::string name = socket.value("name", "");
    clients.insert(name.substr(name.find(' ') + 1));
    return IdOf(socket, "socketId");
  };
  ForEach("server", grpc_channelz_get_servers, [&](const Json& server) {
    const int64_t id = IdOf(server.at("ref"), "serverId");
    constexpr intptr_t kAsManyAsFit = 0;
    ForEach(
        "socketRef",
        [id](int64_t from) { return grpc_channelz_get_server_sockets(id, from, kAsManyAsFit); },
        add);
    return id;
  });
  return clients;
}

}  // namespace penstock
