// SPDX-License-Identifier: Apache-2.0
//
// MessageSource: where a kernel gets its MessageType from (attribute descriptor_source).
#pragma once

#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "core/op/kernel.h"
#include "kernels/parsing/message_type.h"

namespace penstock {

// Thread-safe after Init.
class MessageSource {
 public:
  // Reads the attributes descriptor_source, message_type and field_names. Unless the descriptors
  // are in a file, finds the message type, too.
  Status Init(const KernelInit& node, std::vector<DType> dtypes, bool extensions);
  // Returns the message type. The first successful call reads the file, if there is one.
  StatusOr<std::shared_ptr<const MessageType>> Get(KernelContext& ctx);

 private:
  MessageType::Spec spec_;
  std::string file_;  // empty: the type was found by Init
  Mutex mu_;
  std::shared_ptr<const MessageType> type_ ABSL_GUARDED_BY(mu_);
};

// Returns the declarations of the attributes that Init reads.
std::vector<AttrDef> MessageAttrs();

}  // namespace penstock
