// SPDX-License-Identifier: Apache-2.0
#include "core/base/error_origin.h"

#include <utility>

#include "absl/strings/cord.h"

namespace penstock {
namespace {

constexpr char kNodePayload[] = "penstock/node";
constexpr char kTaskPayload[] = "penstock/task";
// The payload of an error whose text ends with a node's name.
constexpr char kNodeShownPayload[] = "penstock/node_shown";

bool Has(const Status& status, const char* payload) {
  return status.GetPayload(payload).has_value();
}

Status With(Status status, const char* payload, string_view name) {
  if (!status.ok()) status.SetPayload(payload, absl::Cord(name));
  return status;
}

// Returns "" if there is no such payload.
std::string Recorded(const Status& status, const char* payload) {
  const auto name = status.GetPayload(payload);
  return name.has_value() ? std::string(*name) : "";
}

}  // namespace

Status WithNode(Status status, string_view node) {
  return With(std::move(status), kNodePayload, node);
}

Status InNode(const Status& status, string_view node) {
  if (status.ok()) return status;
  return WithNode(Annotate(status, StrCat("node '", node, "'")), node);
}

std::string FailedNode(const Status& status) { return Recorded(status, kNodePayload); }

Status WithTask(Status status, string_view task) {
  return With(std::move(status), kTaskPayload, task);
}

std::string FailedTask(const Status& status) { return Recorded(status, kTaskPayload); }

Status ShowNode(const Status& status) {
  if (!Has(status, kNodePayload) || Has(status, kNodeShownPayload)) return status;
  Status shown =
      WithMessage(status, StrCat(status.message(), "\n\t [[{{node ", FailedNode(status), "}}]]"));
  shown.SetPayload(kNodeShownPayload, absl::Cord());
  return shown;
}

Status AtNode(const Status& status, string_view node) {
  return Has(status, kNodeShownPayload) ? status : ShowNode(WithNode(status, node));
}

Status WithOriginOf(const Status& cause, Status status) {
  if (status.ok()) return status;
  cause.ForEachPayload(
      [&status](string_view type, const absl::Cord& payload) { status.SetPayload(type, payload); });
  return status;
}

Status WithMessage(const Status& status, string_view message) {
  return WithOriginOf(status, Status(status.code(), message));
}

}  // namespace penstock
