// SPDX-License-Identifier: Apache-2.0
#include "core/base/detached_thread.h"

#include <pthread.h>

#include <system_error>
#include <thread>
#include <utility>

namespace penstock {

Status StartDetachedThread(const std::string& name, absl::AnyInvocable<void() &&> body) {
  try {
    std::thread([label = name.substr(0, 15), body = std::move(body)]() mutable {
      pthread_setname_np(pthread_self(), label.c_str());
      std::move(body)();
    }).detach();
  } catch (const std::system_error& e) {
    return ResourceExhausted("no thread for '", name, "': ", e.what());
  }
  return OkStatus();
}

}  // namespace penstock
