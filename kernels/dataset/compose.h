// SPDX-License-Identifier: Apache-2.0
//
// Makes the datasets that other ops combine: parallel map and batch.
#pragma once

#include "kernels/dataset/captured_function.h"
#include "kernels/dataset/dataset.h"

namespace penstock {

// Returns the dataset of ParallelMapDatasetV2; `keeps_count` is its preserve_cardinality.
DatasetPtr NewParallelMapDataset(ElementSpec spec, DatasetPtr input, CapturedFunction function,
                                 int64_t parallel, bool keeps_count);
// Returns the dataset of BatchDatasetV2. REQUIRES: size > 0.
DatasetPtr NewBatchDataset(DatasetPtr input, int64_t size, bool drop_remainder);

}  // namespace penstock
