// SPDX-License-Identifier: Apache-2.0
//
// SmallestCover: the fewest sets that together contain everything. The placer uses it to name the
// fewest nodes that together exclude every device.
#pragma once

#include <vector>

namespace penstock {

// `sets` have the same size: sets[i][x] tells whether set i contains x. Returns indices in `sets`,
// in ascending order, of sets whose union contains every x. If four sets or fewer suffice, returns
// the smallest number possible; else a greedy choice. Returns all indices if there is no such
// union. Of equal sets it takes the first.
std::vector<int> SmallestCover(const std::vector<std::vector<bool>>& sets);

}  // namespace penstock
