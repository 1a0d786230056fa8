// SPDX-License-Identifier: Apache-2.0
//
// DeterministicBytes: serialises a message so that equal messages have equal bytes. Protobuf's own
// functions write the entries of a map (attributes) in any order.
#pragma once

#include <string>

namespace google::protobuf {
class MessageLite;
}  // namespace google::protobuf

namespace penstock {

// REQUIRES: the message has all its required fields, and takes less than 2 GiB.
std::string DeterministicBytes(const google::protobuf::MessageLite& message);

}  // namespace penstock
