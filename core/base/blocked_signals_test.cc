// SPDX-License-Identifier: Apache-2.0
#include "core/base/blocked_signals.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

volatile sig_atomic_t handled = 0;

TEST(BlockedSignals, HandlersRunWhenTheLastIsGone) {
  struct sigaction count = {}, before = {};
  count.sa_handler = [](int) { handled = handled + 1; };
  ASSERT_EQ(sigaction(SIGUSR1, &count, &before), 0);
  {
    const BlockedSignals outer;
    {
      const BlockedSignals inner;
      pthread_kill(pthread_self(), SIGUSR1);
    }
    EXPECT_EQ(handled, 0);
  }
  EXPECT_EQ(handled, 1);
  sigaction(SIGUSR1, &before, nullptr);
}

TEST(BlockedSignals, FaultsStillEndTheProcess) {
  EXPECT_DEATH(
      {
        const BlockedSignals blocked;
        pthread_kill(pthread_self(), SIGABRT);
      },
      "");
}

}  // namespace
}  // namespace penstock
