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

// The file as a tensor. Only bytes (uint8) are understood, which is what the MNIST family has.
// InvalidArgument says what is wrong with the file; nothing larger than `bytes_max` is unpacked.
StatusOr<Tensor> ReadIdx(Env& env, const std::string& path, int64_t bytes_max = 1 << 30);

}  // namespace penstock::examples
