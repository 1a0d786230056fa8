// SPDX-License-Identifier: Apache-2.0
//
// A dataset of elements that are there, as windows and groups are.
#pragma once

#include <vector>

#include "kernels/dataset/dataset.h"

namespace penstock {

DatasetPtr NewElementsDataset(ElementSpec spec, std::vector<Element> elements);
// The same as the value of a scalar tensor.
Tensor ElementsTensor(ElementSpec spec, std::vector<Element> elements);

}  // namespace penstock
