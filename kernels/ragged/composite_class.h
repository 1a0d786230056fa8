// SPDX-License-Identifier: Apache-2.0
//
// Reads the metadata of composite tensors, which TensorFlow's Python client makes. Thread-safe.
#pragma once

#include <string>

#include "core/base/status.h"

namespace penstock {

// Returns the name of the class of composite tensors that the bytes of a
// CompositeTensorVariantMetadata describe, such as "RAGGED_TENSOR_SPEC"; the number of a class that
// has no name here. InvalidArgument if the bytes are not such a message.
StatusOr<std::string> CompositeClass(const std::string& metadata);

}  // namespace penstock
