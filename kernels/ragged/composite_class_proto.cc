// SPDX-License-Identifier: Apache-2.0
#include "kernels/ragged/composite_class.h"
#include "proto/tensorflow/composite.pb.h"

namespace penstock {

StatusOr<std::string> CompositeClass(const std::string& metadata) {
  tensorflow::CompositeTensorVariantMetadata parsed;
  if (!parsed.ParseFromString(metadata)) return InvalidArgument("Error parsing metadata");
  const auto type = parsed.type_spec_proto().type_spec_class();
  if (!tensorflow::TypeSpecProto::TypeSpecClass_IsValid(type)) {
    return StrCat("class ", static_cast<int>(type));
  }
  return std::string(tensorflow::TypeSpecProto::TypeSpecClass_Name(type));
}

}  // namespace penstock
