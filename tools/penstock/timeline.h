// SPDX-License-Identifier: Apache-2.0
//
// Draws a predicted step as SVG: a row for each lane of each device, a box for each node, and below
// them a row for the transfers into each device. The SVG loads no other files; boxes have tooltips.
#pragma once

#include <string>

#include "core/compiler/pass/compile_report.h"

namespace penstock {

// Returns the SVG. REQUIRES: the report has a prediction.
std::string TimelineSvg(const PlacementReport& report);

}  // namespace penstock
