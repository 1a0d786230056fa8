// SPDX-License-Identifier: Apache-2.0
//
// Tests that a signal handler may run at any moment of a product without harm.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>

#include <vector>

#include "core/base/scheduler.h"
#include "kernels/math/gemm.h"

namespace penstock {
namespace {

volatile sig_atomic_t handled = 0;

// Sends SIGALRM to this process every 200 us, with an ordinary handler.
class Alarms {
 public:
  Alarms() {
    struct sigaction action = {};
    action.sa_handler = [](int) { handled = handled + 1; };
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &before_);
    const itimerval often = {{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~Alarms() {
    const itimerval never = {};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_;
};

TEST(GemmSignals, ProductsAreRightAmidSignals) {
  const Product shape = {.m = 128, .n = 512, .k = 784, .a = Side::kTransposed};
  const std::vector<float> a(shape.k * shape.m, 1), b(shape.k * shape.n, 1);
  std::vector<float> c(shape.m * shape.n);
  const Alarms alarms;
  for (int i = 0; i < 100'000 && handled < 500; ++i) {
    Multiply(Scheduler::Real(), shape, a.data(), b.data(), c.data());
    ASSERT_EQ(c, std::vector<float>(c.size(), static_cast<float>(shape.k)));
  }
  EXPECT_GE(handled, 500);
}

}  // namespace
}  // namespace penstock
