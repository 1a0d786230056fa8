// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/memory_account.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

std::string& Refusal() {
  thread_local std::string refusal;
  return refusal;
}

}  // namespace

constinit thread_local MemoryAccount* ChargedAccount::current_ = nullptr;

MemoryAccount& MemoryAccount::Task() {
  static MemoryAccount& task = *new MemoryAccount("this task (--memory_limit)", 0, nullptr);
  return task;
}

MemoryAccount* MemoryAccount::New(std::string owner, int64_t limit, MemoryAccount& parent) {
  parent.Ref();
  return new MemoryAccount(std::move(owner), limit, &parent);
}

void MemoryAccount::Unref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  if (parent_ != nullptr) parent_->Unref();
  delete this;
}

bool MemoryAccount::Charge(int64_t bytes) {
  const int64_t now = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const int64_t most = limit();
  if (most > 0 && now > most) {
    in_use_.fetch_sub(bytes, std::memory_order_relaxed);
    SetRefusal(absl::StrCat(": ", owner_, " may hold ", most, " bytes and holds ", now - bytes));
    return false;
  }
  if (parent_ == nullptr || parent_->Charge(bytes)) {
    RaisePeak(now);
    return true;
  }
  in_use_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

void MemoryAccount::ChargeAlways(int64_t bytes) {
  for (MemoryAccount* account = this; account != nullptr; account = account->parent_) {
    account->RaisePeak(account->in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
  }
}

void MemoryAccount::RaisePeak(int64_t now) {
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void MemoryAccount::Return(int64_t bytes) { ChargeAlways(-bytes); }

int64_t MemoryAccount::available() const {
  int64_t available = std::numeric_limits<int64_t>::max();
  for (const MemoryAccount* account = this; account != nullptr; account = account->parent_) {
    const int64_t most = account->limit();
    if (most > 0) available = std::min(available, std::max<int64_t>(0, most - account->in_use()));
  }
  return available;
}

std::string TakeRefusal() { return std::exchange(Refusal(), std::string()); }

void SetRefusal(std::string why) { Refusal() = std::move(why); }

}  // namespace penstock
