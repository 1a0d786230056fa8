// SPDX-License-Identifier: Apache-2.0
//
// The messages by which tasks tell each other about the ranks of groups. They travel as vectors of
// strings.
//
// Messages are value types. Parsing rejects malformed input, because other processes may send
// anything.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock::collective {

struct GroupKey {
  int64_t key = 0, size = 0;
  auto operator<=>(const GroupKey&) const = default;
  std::string ToString() const;  // "group 1 of 4 ranks"
};

// Says that a rank waits for its group.
struct Join {
  GroupKey group;
  std::string device;   // the device's full name, which identifies the rank
  std::string session;  // the handle of its session
  uint64_t nonce = 0;   // identifies this attempt to join
};

// Says that some of the sender's ranks no longer wait for their group, or have left it.
struct Leave {
  GroupKey group;
  std::vector<uint64_t> nonces;  // of the Joins that are revoked
  // The id of the group, and the executions that the sender completed last; 0 and none if the group
  // had not formed.
  uint64_t formed = 0;
  std::vector<uint64_t> completed = {};
  Status why;
};

using Message = std::variant<Join, Leave>;

Tensor ToTensor(const Message& message);
// Parses a message. InvalidArgument says what is malformed.
StatusOr<Message> ParseMessage(const Tensor& tensor);

}  // namespace penstock::collective
