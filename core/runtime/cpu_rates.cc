// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/cpu_rates.h"

#include <utility>

#include "core/base/mutex.h"

namespace penstock {
namespace {

struct Known {
  Mutex mu;
  CpuRates rates ABSL_GUARDED_BY(mu);
};

Known& Process() {
  static Known* const known = new Known;  // never destroyed
  return *known;
}

}  // namespace

CpuRates GetCpuRates() {
  Known& known = Process();
  MutexLock lock(known.mu);
  return known.rates;
}

void SetCpuRates(CpuRates rates) {
  Known& known = Process();
  MutexLock lock(known.mu);
  known.rates = std::move(rates);
}

}  // namespace penstock
