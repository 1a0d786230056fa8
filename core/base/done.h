// SPDX-License-Identifier: Apache-2.0
//
// Done: the continuation of one asynchronous operation, to be called exactly once.
//
// The call consumes the Done: `std::move(done)(status)`. Destroying a Done that was not called
// aborts the process, because a lost Done would make a step hang. Move-only. One owner at a time;
// may be called on any thread.
#pragma once

#include <utility>

#include "absl/functional/any_invocable.h"
#include "core/base/check.h"
#include "core/base/status.h"

namespace penstock {

class [[nodiscard]] Done {
 public:
  using Callback = absl::AnyInvocable<void(Status) &&>;

  explicit Done(Callback callback) : callback_(std::move(callback)) {}
  Done(Done&& other) noexcept : callback_(std::move(other.callback_)) { other.callback_ = nullptr; }
  Done& operator=(Done&&) = delete;
  ~Done() { CHECK(!callback_, "a Done was dropped without being called"); }

  void operator()(Status status) && {
    CHECK(callback_, "a Done was called twice");
    Callback callback = std::move(callback_);
    callback_ = nullptr;
    std::move(callback)(std::move(status));
  }

 private:
  Callback callback_;
};

}  // namespace penstock
