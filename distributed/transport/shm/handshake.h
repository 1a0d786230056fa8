// SPDX-License-Identifier: Apache-2.0
//
// The handshake by which two tasks set up shared memory. The consumer asks the producer over gRPC
// (Meet) which host it is on and on which socket it listens. Then it connects to that socket, which
// proves that both are in one network namespace, and sends Hello. The producer answers with
// Welcome, which carries the segment.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace penstock {

// The version of the handshake, the records and the segment. Raise it when one of them changes.
inline constexpr uint32_t kShmVersion = 2;
// The time within which the other end has to answer.
inline constexpr int64_t kHandshakeNanosMax = 10'000'000'000;

// Identifies a host and a network namespace in it.
struct HostIdentity {
  std::string boot_id;             // the kernel's id, new at each start of the machine
  uint64_t network_namespace = 0;  // the namespace's number

  // Returns the identity of this process. FailedPrecondition if /proc does not provide it.
  static StatusOr<HostIdentity> Own();
  // Returns OK if `other` equals this one. FailedPrecondition says how `other` differs: "it is on
  // another host (boot id ..., here ...)".
  Status Compare(const HostIdentity& other) const;
};

// Returns FailedPrecondition unless the process at the other end of the socket belongs to this
// process's user.
Status CheckUser(int socket);

struct Hello {
  std::string consumer;      // the consumer's task
  uint64_t incarnation = 0;  // incarnation of the producer that the consumer expects

  std::string ToBytes() const;
  static StatusOr<Hello> Parse(string_view bytes);
};

// Returns the message Welcome. If the status is OK, the segment's descriptor comes with it.
std::string WelcomeBytes(const Status& status);
Status ParseWelcome(string_view bytes);

}  // namespace penstock
