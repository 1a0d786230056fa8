// SPDX-License-Identifier: Apache-2.0
#include "core/op/awaited_variables.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/mutex.h"

namespace penstock {
namespace {

constexpr size_t kVariablesMax = 1'000;
constexpr int64_t kPauseNanosMax = 60'000'000'000;

using Key = std::tuple<std::string, std::string, std::string>;  // device, container, name
struct AskedVariables {
  Mutex mu;
  std::map<Key, AwaitedVariable> variables ABSL_GUARDED_BY(mu);
};
AskedVariables& GlobalAskedVariables() {
  static AskedVariables& asked = *new AskedVariables;
  return asked;
}

}  // namespace

void NoteAwaitedVariable(const std::string& device, const std::string& container,
                         const std::string& name, Env& env) {
  const int64_t now_ns = env.NowNanos();
  AskedVariables& asked = GlobalAskedVariables();
  MutexLock lock(asked.mu);
  AwaitedVariable& variable = asked.variables[{device, container, name}];
  if (variable.times == 0 || now_ns - variable.last_ns > kPauseNanosMax) {
    variable = {.device = device, .container = container, .name = name, .first_ns = now_ns};
  }
  variable.last_ns = now_ns;
  ++variable.times;
  if (asked.variables.size() <= kVariablesMax) return;
  asked.variables.erase(std::min_element(
      asked.variables.begin(), asked.variables.end(),
      [](const auto& a, const auto& b) { return a.second.first_ns < b.second.first_ns; }));
}

std::vector<AwaitedVariable> AwaitedVariables() {
  AskedVariables& asked = GlobalAskedVariables();
  MutexLock lock(asked.mu);
  std::vector<AwaitedVariable> list;
  for (const auto& [key, variable] : asked.variables) list.push_back(variable);
  return list;
}

}  // namespace penstock
