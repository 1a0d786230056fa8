// SPDX-License-Identifier: Apache-2.0
#include "distributed/session/in_process_sessions.h"

#include <map>
#include <utility>

#include "core/base/mutex.h"

namespace penstock {
namespace {

struct Table {
  Mutex mu;
  std::map<std::string, InProcessSessions::Make> makers ABSL_GUARDED_BY(mu);  // by address
};

// Never destroyed, because static destructors may stop servers.
Table& GlobalTable() {
  static Table& table = *new Table;
  return table;
}

}  // namespace

void InProcessSessions::Add(const std::string& address, Make make) {
  Table& table = GlobalTable();
  MutexLock lock(table.mu);
  table.makers[address] = std::move(make);
}

void InProcessSessions::Remove(const std::string& address) {
  Table& table = GlobalTable();
  MutexLock lock(table.mu);
  table.makers.erase(address);
}

std::unique_ptr<SessionInterface> InProcessSessions::New(const std::string& address,
                                                         const SessionOptions& options) {
  Table& table = GlobalTable();
  MutexLock lock(table.mu);
  const auto found = table.makers.find(address);
  return found == table.makers.end() ? nullptr : found->second(options);
}

}  // namespace penstock
