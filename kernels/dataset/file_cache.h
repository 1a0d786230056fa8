// SPDX-License-Identifier: Apache-2.0
//
// FileCacheDataset: keeps the elements of the first complete iteration in a file.
#pragma once

#include <string>

#include "kernels/dataset/dataset.h"

namespace penstock {

// Returns a dataset of the elements of `input`. If the cache file does not exist, an iterator
// writes it while it reads `input` to the end. If the file exists, an iterator reads it instead of
// `input`.
DatasetPtr NewFileCacheDataset(DatasetPtr input, std::string filename);

}  // namespace penstock
