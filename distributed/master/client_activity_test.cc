// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/client_activity.h"

#include "core/base/testing/durations.h"
#include "core/runtime/testing/sim_test.h"

namespace penstock {
namespace {

class ClientActivityTest : public SimTest {};

TEST_F(ClientActivityTest, CallsAndOtherUsesCount) {
  Simulate([&] {
    ClientActivity activity(env_);
    EXPECT_EQ(activity.unused_ns(), 0);
    Pass(20);
    EXPECT_EQ(activity.unused_ns(), 20 * kMilli);
    activity.NoteUse();
    EXPECT_EQ(activity.unused_ns(), 0);
    Pass(30);
    activity.NoteCall("ipv4:1.2.3.4:5");
    EXPECT_EQ(activity.unused_ns(), 0);
    EXPECT_EQ(activity.client(), "ipv4:1.2.3.4:5");
  });
}

TEST_F(ClientActivityTest, TheConnectionOfTheLastCallerCounts) {
  Simulate([&] {
    ClientActivity activity(env_);
    activity.NoteCall("first");
    activity.NoteCall("last");
    EXPECT_EQ(activity.client(), "last");
    Pass(20);
    activity.NoteConnected({"first", "another"});
    EXPECT_EQ(activity.unused_ns(), 20 * kMilli);
    activity.NoteConnected({"another", "last"});
    EXPECT_EQ(activity.unused_ns(), 0);
  });
}

TEST_F(ClientActivityTest, AClientInThisProcessIsAlwaysConnected) {
  Simulate([&] {
    ClientActivity activity(env_);
    Pass(20);
    activity.NoteConnected({});
    EXPECT_EQ(activity.unused_ns(), 0);
  });
}

}  // namespace
}  // namespace penstock
