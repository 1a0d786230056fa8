// SPDX-License-Identifier: Apache-2.0
//
// How two tasks come to share memory. The consumer asks the producer over gRPC (Meet) which host it
// is on and which socket it listens at; connects, which proves that both are in one network
// namespace; and says Hello. The producer answers with Welcome, which brings the segment.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace penstock {

// Raised with each change of what the two ends share: of the handshake, the records or the segment.
inline constexpr uint32_t kShmVersion = 2;
// The other end has to answer within so long.
inline constexpr int64_t kHandshakeNanosMax = 10'000'000'000;

// Equal in all tasks of one host and network namespace.
struct HostIdentity {
  std::string boot_id;             // of the kernel, new at each start
  uint64_t network_namespace = 0;  // its number

  // FailedPrecondition if the system does not say.
  static StatusOr<HostIdentity> Own();
  // FailedPrecondition says how `other` differs: "it is on another host (boot id ..., here ...)".
  Status Compare(const HostIdentity& other) const;
};

// FailedPrecondition unless the process at the other end of the socket belongs to this one's user.
Status CheckUser(int socket);

struct Hello {
  std::string consumer;      // its task
  uint64_t incarnation = 0;  // of the producer that is meant

  std::string ToBytes() const;
  static StatusOr<Hello> Parse(string_view bytes);
};

// As a message: OK comes with the segment.
std::string WelcomeBytes(const Status& status);
Status ParseWelcome(string_view bytes);

}  // namespace penstock
