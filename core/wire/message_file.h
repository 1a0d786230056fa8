// SPDX-License-Identifier: Apache-2.0
//
// Parses protobuf messages from files, binary or text.
#pragma once

#include <string>

#include "core/base/status.h"

namespace google::protobuf {
class Message;
}

namespace penstock {

enum class UnknownFields { kRefused, kIgnored };  // in text files; binary files always ignore them

// Parses a binary or a text message, and recognises the form by the contents: a binary message with
// graphs contains a control character, a text message does not. InvalidArgument gives the position
// of a mistake in a text. ResourceExhausted if `contents` has 2 GiB or more.
Status ParseMessage(const std::string& contents, UnknownFields unknown,
                    google::protobuf::Message* message);

}  // namespace penstock
