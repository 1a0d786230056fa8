// SPDX-License-Identifier: Apache-2.0
#include "core/base/blocking_calls.h"

#include <algorithm>
#include <utility>

#include "core/base/mutex.h"

namespace penstock {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

}  // namespace

// Never destroyed, because calls may still run when static objects are destroyed.
struct BlockingCall::Table {
  Mutex mu;
  std::vector<const BlockingCall*> calls ABSL_GUARDED_BY(mu);  // oldest first

  static Table& Get() {
    static Table& table = *new Table;
    return table;
  }
};

BlockingCall::BlockingCall(std::string what, Env& env)
    : what_(std::move(what)), since_ns_(env.NowNanos()) {
  Table& table = Table::Get();
  MutexLock lock(table.mu);
  table.calls.push_back(this);
}

BlockingCall::~BlockingCall() {
  Table& table = Table::Get();
  MutexLock lock(table.mu);
  table.calls.erase(std::find(table.calls.begin(), table.calls.end(), this));
}

std::vector<std::string> BlockingCall::List(Env& env) {
  const int64_t now = env.NowNanos();
  std::vector<std::string> list;
  Table& table = Table::Get();
  MutexLock lock(table.mu);
  for (const BlockingCall* call : table.calls) {
    list.push_back(StrCat(call->what_, ", for ", (now - call->since_ns_) / kNanosPerSecond, " s"));
  }
  return list;
}

}  // namespace penstock
