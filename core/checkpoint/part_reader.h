// SPDX-License-Identifier: Apache-2.0
//
// Reads the bytes of one index entry from its data file and verifies their checksum.
#pragma once

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/checkpoint/bundle_entry.h"
#include "core/checkpoint/tensor_slice.h"
#include "core/tensor/tensor.h"

namespace penstock {

// Copies the elements that are in both boxes, `from` and `to`, from the file into `*tensor`, which
// has the shape of `to`. `entry` describes where the file stores the box `from`. Both boxes are
// results of TensorSlice::Within for one tensor. DataLoss if the checksum is wrong; the contents of
// `*tensor` are then undefined.
Status ReadPart(const RandomAccessFile& file, const BundleEntry& entry, const TensorSlice& from,
                const TensorSlice& to, Tensor* tensor);

Status VerifyPart(const RandomAccessFile& file, const BundleEntry& entry);

}  // namespace penstock
