// SPDX-License-Identifier: Apache-2.0
#include "core/wire/deterministic_bytes.h"

#include "core/base/check.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message_lite.h"

namespace penstock {

std::string DeterministicBytes(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  CHECK(message.SerializeToCodedStream(&coded));
  coded.Trim();
  return bytes;
}

}  // namespace penstock
