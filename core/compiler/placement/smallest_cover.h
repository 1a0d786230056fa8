// SPDX-License-Identifier: Apache-2.0
//
// SmallestCover: the fewest sets that together contain everything. The placer uses it to name the
// fewest nodes that together exclude every device.
#pragma once

#include <vector>

namespace penstock {

// `sets` are of one size: sets[i][x] says whether set i contains x. Returns indices in `sets`, in
// ascending order, whose union contains every x: as few as possible up to four; above that a greedy
// choice. All indices if there is no such union. Of equal sets the first is taken.
std::vector<int> SmallestCover(const std::vector<std::vector<bool>>& sets);

}  // namespace penstock
