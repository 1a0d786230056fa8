// SPDX-License-Identifier: Apache-2.0
//
// A dataset of elements that are held in memory. Windows and groups are such datasets.
#pragma once

#include <vector>

#include "kernels/dataset/dataset.h"

namespace penstock {

DatasetPtr NewElementsDataset(ElementSpec spec, std::vector<Element> elements);
// Returns a dataset of `elements`, as a scalar variant tensor.
Tensor ElementsTensor(ElementSpec spec, std::vector<Element> elements);

}  // namespace penstock
