// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/pass/compile_report.h"

#include "absl/strings/str_format.h"
#include "core/base/status.h"

namespace penstock {
namespace {

const char* Text(PlacementReport::Reason reason) {
  switch (reason) {
    case PlacementReport::Reason::kOnlyDevice:
      return "the only device that its constraints and kernels allow";
    case PlacementReport::Reason::kHoldsState:
      return "holds state: the first device that its constraints and kernels allow";
    case PlacementReport::Reason::kEndsSoonest:
      return "ends soonest";
    case PlacementReport::Reason::kShortensStep:
      return "the whole step ends sooner";
  }
  return "";
}

}  // namespace

std::string ToString(const CompileReport& report) {
  std::string text;
  for (const auto& [pass, nanos] : report.passes) {
    absl::StrAppendFormat(&text, "pass %s: %.3f ms\n", pass, static_cast<double>(nanos) / 1e6);
  }
  const PlacementReport& placement = report.placement;
  for (const PlacementReport::Group& group : placement.groups) {
    const std::string others =
        group.num_nodes > 1 ? StrCat(" and ", group.num_nodes - 1, " more") : "";
    absl::StrAppendFormat(&text, "%s%s @ %s: %s\n", group.node, others,
                          placement.devices[group.device], Text(group.reason));
    for (const auto& [device, end_ns] : group.candidates) {
      if (end_ns == 0) continue;
      absl::StrAppendFormat(&text, "    %s  ends after %.3f us\n", placement.devices[device],
                            end_ns / 1e3);
    }
  }
  if (placement.step_ns == 0) return text;
  absl::StrAppendFormat(&text, "predicted step: %.3f us, at least %.3f us wherever nodes run\n",
                        placement.step_ns / 1e3, placement.least_ns / 1e3);
  return text;
}

}  // namespace penstock
