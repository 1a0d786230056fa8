// SPDX-License-Identifier: Apache-2.0
//
// Reads IDX files, the format of MNIST and its relatives: a header of big-endian numbers, then the
// elements. Plain or compressed by gzip.
#pragma once

#include <string>

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace penstock::examples {

// Returns the file's contents as a tensor. Supports only bytes (uint8), as in the MNIST family.
// InvalidArgument if the file is malformed, or if a compressed file has more than `bytes_max` bytes
// when unpacked; the message says which.
StatusOr<Tensor> ReadIdx(Env& env, const std::string& path, int64_t bytes_max = 1 << 30);

}  // namespace penstock::examples
