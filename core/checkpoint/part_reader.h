// SPDX-License-Identifier: Apache-2.0
//
// Reads the bytes of one index entry out of its data file, verifying their checksum on the way.
#pragma once

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/checkpoint/bundle_entry.h"
#include "core/checkpoint/tensor_slice.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Copies what the box `from`, stored as `entry`, and the box `to` have in common into `*tensor`,
// which is the box `to`. Both are boxes within one tensor (results of TensorSlice::Within); the
// file holds the bytes. DataLoss where the checksum is wrong; `*tensor` is then of no use.
Status ReadPart(const RandomAccessFile& file, const BundleEntry& entry, const TensorSlice& from,
                const TensorSlice& to, Tensor* tensor);

Status VerifyPart(const RandomAccessFile& file, const BundleEntry& entry);

}  // namespace penstock
