// SPDX-License-Identifier: Apache-2.0
//
// Datasets that ops are composed of.
#pragma once

#include "kernels/dataset/captured_function.h"
#include "kernels/dataset/dataset.h"

namespace penstock {

// See ParallelMapDatasetV2; `keeps_count`: its preserve_cardinality.
DatasetPtr NewParallelMapDataset(ElementSpec spec, DatasetPtr input, CapturedFunction function,
                                 int64_t parallel, bool keeps_count);
// See BatchDatasetV2. REQUIRES size > 0.
DatasetPtr NewBatchDataset(DatasetPtr input, int64_t size, bool drop_remainder);

}  // namespace penstock
