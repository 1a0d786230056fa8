// SPDX-License-Identifier: Apache-2.0
#include "core/base/status.h"

#include "absl/strings/cord.h"

namespace penstock {

Status Annotate(const Status& status, string_view context) {
  if (status.ok()) return status;
  Status annotated(status.code(), StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&](string_view type, const absl::Cord& payload) { annotated.SetPayload(type, payload); });
  return annotated;
}

}  // namespace penstock
