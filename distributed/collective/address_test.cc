// SPDX-License-Identifier: Apache-2.0
#include "distributed/collective/address.h"

#include "gtest/gtest.h"

namespace penstock::collective {
namespace {

TEST(AddressTest, TravelsInARendezvousKey) {
  const TaskName one{.job = "worker", .task = 0}, other{.job = "worker", .task = 1};
  for (const Address& sent :
       {Address{}, Address{.group = 1, .execution = 2, .fingerprint = 3, .tag = 4},
        Address{.group = 0xffffffff,
        .execution = Address::kExecutionMask,
        .fingerprint = 0xffff,
        .tag = 0xffffffff}}) {
    const HashedKey key = KeyBetween(one, other, kDataKey).In(sent.frame(), sent.iteration());
    const Address got = Address::Of(key);
    EXPECT_EQ(got.group, sent.group);
    EXPECT_EQ(got.execution, sent.execution);
    EXPECT_EQ(got.fingerprint, sent.fingerprint);
    EXPECT_EQ(got.tag, sent.tag);
  }
}

}  // namespace
}  // namespace penstock::collective
