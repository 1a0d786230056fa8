// SPDX-License-Identifier: Apache-2.0
//
// The messages by which tasks tell each other about the ranks of groups. They travel as vectors of
// strings.
//
// Each message is a value. Parsing rejects malformed input, which may come from outside.
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

// A rank waits for its group.
struct Join {
  GroupKey group;
  std::string device;   // the rank
  std::string session;  // the handle of its session
  uint64_t nonce = 0;   // of this attempt
};

// Ranks of the sender's no longer wait for their group, or have left it.
struct Leave {
  GroupKey group;
  std::vector<uint64_t> nonces;  // of the joins that no longer hold
  // If the group had formed: which one, and the last executions that the sender has completed.
  uint64_t formed = 0;
  std::vector<uint64_t> completed = {};
  Status why;
};

using Message = std::variant<Join, Leave>;

Tensor ToTensor(const Message& message);
// InvalidArgument says what is wrong.
StatusOr<Message> ParseMessage(const Tensor& tensor);

}  // namespace penstock::collective
