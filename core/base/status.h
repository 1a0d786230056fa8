// SPDX-License-Identifier: Apache-2.0
//
// Status and StatusOr, and one builder per error code. All code reports errors that come from
// outside by a Status; CHECK (base/check.h) is only for bugs of Penstock.
//
// Builders join their arguments as absl::StrCat does:
//   return InvalidArgument("node '", node.name(), "': expected a matrix, got shape ", shape);
// Strings at interfaces are `string_view` (Abseil's: on Debian it is not std::string_view).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock {

using absl::OkStatus;
using absl::Status;
using absl::StatusCode;
using absl::StatusOr;
using absl::StrAppend;
using absl::StrCat;
using absl::string_view;

#define PENSTOCK_ERROR(Name)                              \
  template <class... Parts>                               \
  [[nodiscard]] Status Name(const Parts&... parts) {      \
    return Status(StatusCode::k##Name, StrCat(parts...)); \
  }
PENSTOCK_ERROR(Cancelled)
PENSTOCK_ERROR(Unknown)
PENSTOCK_ERROR(InvalidArgument)
PENSTOCK_ERROR(DeadlineExceeded)
PENSTOCK_ERROR(NotFound)
PENSTOCK_ERROR(AlreadyExists)
PENSTOCK_ERROR(PermissionDenied)
PENSTOCK_ERROR(ResourceExhausted)
PENSTOCK_ERROR(FailedPrecondition)
PENSTOCK_ERROR(Aborted)
PENSTOCK_ERROR(OutOfRange)
PENSTOCK_ERROR(Unimplemented)
PENSTOCK_ERROR(Internal)
PENSTOCK_ERROR(Unavailable)
PENSTOCK_ERROR(DataLoss)
#undef PENSTOCK_ERROR

// Returns the same error with `context` in front of its message ("context: message"). Payloads are
// kept; OK stays OK.
Status Annotate(const Status& status, string_view context);

}  // namespace penstock

#define RETURN_IF_ERROR(...)                             \
  do {                                                   \
    ::penstock::Status penstock_status_ = (__VA_ARGS__); \
    if (!penstock_status_.ok()) [[unlikely]]             \
      return penstock_status_;                           \
  } while (false)

#define PENSTOCK_CONCAT_INNER_(a, b) a##b
#define PENSTOCK_CONCAT_(a, b) PENSTOCK_CONCAT_INNER_(a, b)

// ASSIGN_OR_RETURN(auto x, F()) or ASSIGN_OR_RETURN(x, F()). If the type contains a comma, use
// `auto`.
#define ASSIGN_OR_RETURN(lhs, ...) \
  PENSTOCK_ASSIGN_OR_RETURN_(PENSTOCK_CONCAT_(penstock_or_, __LINE__), lhs, __VA_ARGS__)
#define PENSTOCK_ASSIGN_OR_RETURN_(tmp, lhs, ...) \
  auto tmp = (__VA_ARGS__);                       \
  if (!tmp.ok()) [[unlikely]]                     \
    return std::move(tmp).status();               \
  lhs = *std::move(tmp)
