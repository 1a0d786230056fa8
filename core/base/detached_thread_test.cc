// SPDX-License-Identifier: Apache-2.0
#include "core/base/detached_thread.h"

#include <pthread.h>

#include <future>
#include <memory>
#include <string>

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(DetachedThreadTest, RunsUnderItsName) {
  auto name = std::make_shared<std::promise<std::string>>();
  std::future<std::string> told = name->get_future();
  ASSERT_EQ(StartDetachedThread("a name of more than 15",
                                [name] {
                                  char own[16] = "";
                                  pthread_getname_np(pthread_self(), own, sizeof(own));
                                  name->set_value(own);
                                }),
            OkStatus());
  EXPECT_EQ(told.get(), "a name of more ");
}

}  // namespace
}  // namespace penstock
