// SPDX-License-Identifier: Apache-2.0
#include "core/base/error_origin.h"

#include "absl/strings/cord.h"

namespace penstock {
namespace {

constexpr char kNodePayload[] = "penstock/node";
constexpr char kNodeShownPayload[] = "penstock/node_shown";  // the text ends with a node's name
constexpr char kTaskPayload[] = "penstock/task";

bool Has(const Status& status, const char* payload) {
  return status.GetPayload(payload).has_value();
}

std::string TextOf(const Status& status, const char* payload) {
  const auto cord = status.GetPayload(payload);
  return cord.has_value() ? std::string(*cord) : "";
}

}  // namespace

Status WithNode(Status status, string_view node) {
  if (!status.ok()) status.SetPayload(kNodePayload, absl::Cord(node));
  return status;
}

Status InNode(const Status& status, string_view node) {
  if (status.ok()) return status;
  return WithNode(Annotate(status, StrCat("node '", node, "'")), node);
}

std::string FailedNode(const Status& status) { return TextOf(status, kNodePayload); }

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

Status WithTask(Status status, string_view task) {
  if (!status.ok() && !Has(status, kTaskPayload)) status.SetPayload(kTaskPayload, absl::Cord(task));
  return status;
}

std::string FailedTask(const Status& status) { return TextOf(status, kTaskPayload); }

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
