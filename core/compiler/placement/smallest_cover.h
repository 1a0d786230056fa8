// SPDX-License-Identifier: Apache-2.0
//
// SmallestCover: finds the fewest sets that together contain all elements. The placer uses it to
// name the fewest nodes that together exclude every device.
#pragma once

#include <vector>

namespace penstock {

// sets[i][x] tells whether set i contains the element x; all sets[i] have the same size. Returns
// the indices, in ascending order, of sets whose union contains all elements. If four sets or fewer
// suffice, returns the smallest possible number of sets; else a greedy choice. Of equal sets it
// takes the first. Returns all indices if no union of sets contains all elements.
std::vector<int> SmallestCover(const std::vector<std::vector<bool>>& sets);

}  // namespace penstock
