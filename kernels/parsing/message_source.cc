// SPDX-License-Identifier: Apache-2.0
#include "kernels/parsing/message_source.h"

#include <utility>

#include "absl/strings/strip.h"
#include "core/base/env.h"

namespace penstock {

Status MessageSource::Init(const KernelInit& node, std::vector<DType> dtypes, bool extensions) {
  std::string source;
  RETURN_IF_ERROR(node.Attr("descriptor_source", &source));
  RETURN_IF_ERROR(node.Attr("message_type", &spec_.message_type));
  RETURN_IF_ERROR(node.Attr("field_names", &spec_.field_names));
  spec_.dtypes = std::move(dtypes);
  spec_.extensions = extensions;
  string_view bytes = source;
  const bool embedded = absl::ConsumePrefix(&bytes, "bytes://");
  if (!embedded && !source.empty() && source != "local://") {
    file_ = source;
    return OkStatus();
  }
  const std::string descriptors(bytes);
  MutexLock lock(mu_);
  ASSIGN_OR_RETURN(type_, MessageType::Make(embedded ? &descriptors : nullptr, spec_));
  return OkStatus();
}

StatusOr<std::shared_ptr<const MessageType>> MessageSource::Get(KernelContext& ctx) {
  MutexLock lock(mu_);
  if (type_ == nullptr) {
    ASSIGN_OR_RETURN(const std::string descriptors, ctx.step().env->ReadFile(file_));
    ASSIGN_OR_RETURN(type_, MessageType::Make(&descriptors, spec_));
  }
  return type_;
}

std::vector<AttrDef> MessageAttrs() {
  return {{"message_type", Strings{}},
          {"field_names", StringList{}},
          {"descriptor_source", "local://"}};
}

}  // namespace penstock
