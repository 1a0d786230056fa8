// SPDX-License-Identifier: Apache-2.0
//
// The handles of c_api.h that several files share, and functions that turn errors into PS_Status.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "client/c/c_api.h"
#include "core/base/guarded.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

struct PS_Status {
  penstock::StatusCode code;
  std::string message;
};

struct PS_Tensor {
  penstock::Tensor tensor;
};

namespace penstock::c_api {

// Returns `status` as a new PS_Status for the caller; null if it is OK. If there is no memory for
// the PS_Status, returns a constant that PS_DeleteStatus does not free.
PS_Status* NewStatus(const Status& status);

// Calls fn(), which returns a Status. Returns its error, or the exception that it throws, as a
// PS_Status.
template <class Fn>
PS_Status* Call(const Fn& fn) {
  return NewStatus(Guarded(fn));
}

inline Status NotNull(const void* pointer, const char* what) {
  return pointer != nullptr ? OkStatus() : InvalidArgument(what, " is NULL");
}

}  // namespace penstock::c_api
