// SPDX-License-Identifier: Apache-2.0
//
// Messages in files, binary or text.
#pragma once

#include <string>

#include "core/base/status.h"

namespace google::protobuf {
class Message;
}

namespace penstock {

enum class UnknownFields { kRefused, kIgnored };  // in text; in binary they are always ignored

// Binary or text, told apart by content: a binary message of graphs has a control character in it,
// text has none. InvalidArgument says where a text is wrong.
Status ParseMessage(const std::string& contents, UnknownFields unknown,
                    google::protobuf::Message* message);

}  // namespace penstock
