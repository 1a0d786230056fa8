// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/client_limits.h"

#include <utility>

namespace penstock {

std::string ClientOf(const grpc::ServerContext& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth != nullptr && auth->IsPeerAuthenticated()) {
    for (const grpc::string_ref& name : auth->GetPeerIdentity()) {
      return StrCat("certificate '", string_view(name.data(), name.size()), "'");
    }
  }
  // The peer is "ipv4:10.0.0.7:41764", or "fd:23" for a connection of
  // --insecure_client_address.
  const std::string peer = context.peer();
  const size_t family = peer.find(':'), port = peer.rfind(':');
  if (peer.compare(0, 2, "ip") != 0 || port == family) return "this host";
  return peer.substr(family + 1, port - family - 1);
}

ClientLimits::Permit ClientLimits::HoldPermit(std::shared_ptr<Counts> counts, Count Counts::*kind,
                                              std::string key) {
  Counts* const held = counts.get();
  return Permit(held, [counts = std::move(counts), kind, key = std::move(key)](void*) {
    MutexLock lock(counts->mu);
    const auto found = ((*counts).*kind).find(key);
    if (--found->second == 0) ((*counts).*kind).erase(found);
  });
}

StatusOr<ClientLimits::Permit> ClientLimits::AddSession(const std::string& client) {
  if (options_.max_sessions_per_client == 0) return Permit();
  {
    MutexLock lock(counts_->mu);
    const auto found = counts_->sessions.find(client);
    const int count = found == counts_->sessions.end() ? 0 : found->second;
    if (count >= options_.max_sessions_per_client) {
      return ResourceExhausted("--max_sessions_per_client=", options_.max_sessions_per_client,
                               ": the client at ", client, " has ", count,
                               " sessions with this task; close one of them");
    }
    ++counts_->sessions[client];
  }
  return HoldPermit(counts_, &Counts::sessions, client);
}

StatusOr<ClientLimits::Permit> ClientLimits::AddStep(const std::string& session) {
  if (options_.max_steps_in_flight == 0) return Permit();
  {
    MutexLock lock(counts_->mu);
    const auto found = counts_->steps.find(session);
    const int count = found == counts_->steps.end() ? 0 : found->second;
    if (count >= options_.max_steps_in_flight) {
      return ResourceExhausted("--max_steps_in_flight=", options_.max_steps_in_flight, ": session ",
                               session, " has ", count,
                               " steps in flight; wait until one has ended");
    }
    ++counts_->steps[session];
  }
  return HoldPermit(counts_, &Counts::steps, session);
}

}  // namespace penstock
