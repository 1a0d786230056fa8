// SPDX-License-Identifier: Apache-2.0
//
// A predicted step as a picture: a row for each lane of each device, a box for each node, and below
// them a row for the transfers into each device. SVG that refers to nothing outside; boxes tell
// more when pointed at.
#pragma once

#include <string>

#include "core/compiler/pass/compile_report.h"

namespace penstock {

// REQUIRES a report that was asked to predict.
std::string TimelineSvg(const PlacementReport& report);

}  // namespace penstock
