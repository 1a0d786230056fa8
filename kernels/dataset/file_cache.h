// SPDX-License-Identifier: Apache-2.0
//
// FileCacheDataset: keeps the elements of the first complete iteration in a file.
#pragma once

#include <string>

#include "kernels/dataset/dataset.h"

namespace penstock {

// Returns a dataset of the elements of `input`. An iterator writes the file while it reads `input`
// to its end, if the file does not exist; else it reads the file, and `input` is not used.
DatasetPtr NewFileCacheDataset(DatasetPtr input, std::string filename);

}  // namespace penstock
