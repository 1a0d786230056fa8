// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/server_log.h"

#include "core/base/log.h"
#include "core/base/version.h"

namespace penstock {

void LogStarted(const ServerSettings& server) {
  Log({.task = server.task,
       .event = "server_started",
       .text = StrCat("serves at ", server.target, ", listens at ", server.listens_at,
                      ", protocol ", server.protocol,
                      server.secured ? ", secured" : ", without TLS and tokens", ", may hold ",
                      server.memory_limit >> 20, " MiB of tensors; ", server.detection,
                      "; cluster ", server.cluster),
       .fields = {{"address", server.target},
                  {"listens_at", server.listens_at},
                  {"protocol", server.protocol},
                  {"secured", server.secured ? "yes" : "no"},
                  {"status_url", server.status_url},
                  {"memory_limit", server.memory_limit},
                  {"threads", int64_t{server.threads}},
                  {"incarnation", StrCat(absl::Hex(server.incarnation))},
                  {"detection", server.detection},
                  {"cluster", server.cluster},
                  {"version", kVersion}}});
}

void LogDraining(const std::string& task, const std::string& reason, int64_t grace_ms) {
  Log({.task = task,
       .event = "draining",
       .text = StrCat("ends: ", reason.empty() ? "its program does" : reason,
                      "; sessions that use it have ", grace_ms / 1000, " s"),
       .fields = {{"reason", reason}, {"grace_ms", grace_ms}}});
}

}  // namespace penstock
