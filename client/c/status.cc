// SPDX-License-Identifier: Apache-2.0
//
// Implements the status, versions and op libraries of c_api.h.
#include <new>

#include "client/c/c_api.h"
#include "client/c/handles.h"
#include "core/base/version.h"
#include "core/op/load_library.h"

namespace penstock::c_api {
namespace {

PS_Status& OutOfMemory() {
  static auto& status = *new PS_Status{StatusCode::kResourceExhausted, "out of memory"};
  return status;
}
[[maybe_unused]] const PS_Status& made_at_start = OutOfMemory();

}  // namespace

PS_Status* NewStatus(const Status& status) {
  if (status.ok()) return nullptr;
  try {
    return new PS_Status{status.code(), std::string(status.message())};
  } catch (const std::bad_alloc&) {
    return &OutOfMemory();
  }
}

}  // namespace penstock::c_api

using penstock::Status;
using namespace penstock::c_api;  // NOLINT

int PS_AbiVersion(void) { return PS_ABI_VERSION; }
const char* PS_Version(void) { return penstock::kVersion; }

PS_Code PS_StatusCode(const PS_Status* status) { return static_cast<PS_Code>(status->code); }
const char* PS_StatusMessage(const PS_Status* status) { return status->message.c_str(); }
void PS_DeleteStatus(PS_Status* status) {
  if (status != &OutOfMemory()) delete status;
}

PS_Status* PS_LoadLibrary(const char* path) {
  return Call([&]() -> Status {
    RETURN_IF_ERROR(NotNull(path, "path"));
    return penstock::LoadLibrary(path).status();
  });
}
