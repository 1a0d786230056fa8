// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/verbs/endpoint.h"

#include "distributed/transport/verbs/rings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/penstock/verbs.pb.h"

namespace penstock {
namespace {

using testing::HasSubstr;

VerbsEndpoint Valid() {
  VerbsEndpoint end;
  end.version = kVerbsVersion;
  end.queue_pair = 17;
  end.packet_number = 0xabcdef;
  end.gid.raw[15] = 1;
  end.lid = 3;
  end.network = "RoCE v2";
  end.mtu = 1024;
  end.queue_depth = 256;
  end.reads_max = 16;
  end.ring_address = 0x7f0000000000;
  end.ring_key = 99;
  end.ring_bytes = 65536;
  return end;
}

TEST(VerbsEndpointTest, ComesBackAsItWas) {
  wire::VerbsEndpoint proto;
  Valid().ToProto(&proto);
  const auto back = VerbsEndpoint::Parse(proto);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->queue_pair, 17);
  EXPECT_EQ(back->packet_number, 0xabcdef);
  EXPECT_EQ(back->gid.raw[15], 1);
  EXPECT_EQ(back->ring_address, 0x7f0000000000);
  EXPECT_EQ(back->ring_key, 99);
  EXPECT_TRUE(back->CheckAgreement(Valid()).ok());
}

TEST(VerbsEndpointTest, FieldsOutOfRange) {
  const auto expect_error = [](auto change, StatusCode code) {
    wire::VerbsEndpoint proto;
    Valid().ToProto(&proto);
    change(&proto);
    EXPECT_EQ(VerbsEndpoint::Parse(proto).status().code(), code);
  };
  expect_error([](auto* p) { p->set_gid("short"); }, StatusCode::kDataLoss);
  expect_error([](auto* p) { p->set_mtu(100); }, StatusCode::kDataLoss);
  expect_error([](auto* p) { p->set_queue_pair(1 << 24); }, StatusCode::kDataLoss);
  expect_error([](auto* p) { p->set_reads_max(0); }, StatusCode::kDataLoss);
  expect_error([](auto* p) { p->set_version(99); }, StatusCode::kFailedPrecondition);
}

TEST(VerbsEndpointTest, EndsThatDisagreeNameTheSetting) {
  const auto expect_error = [](auto change, const char* words) {
    VerbsEndpoint other = Valid();
    change(&other);
    const Status why = Valid().CheckAgreement(other);
    EXPECT_EQ(why.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(why.message()), HasSubstr(words));
  };
  expect_error([](auto* e) { e->network = "InfiniBand"; }, "on a network of InfiniBand");
  expect_error([](auto* e) { e->traffic_class = 106; },
               "--verbs_traffic_class (or PENSTOCK_VERBS_TRAFFIC_CLASS) is 0 here and 106 there: "
               "set it to one value in all tasks");
  expect_error([](auto* e) { e->service_level = 3; }, "--verbs_service_level");
  expect_error([](auto* e) { e->queue_depth = 64; }, "--verbs_queue_depth");
}

TEST(VerbsEndpointTest, PacketSizesDisagreeOnlyIfBothAreSet) {
  VerbsEndpoint own = Valid(), other = Valid();
  own.mtu_setting = 4096;
  other.mtu = 512;
  EXPECT_TRUE(own.CheckAgreement(other).ok());
  other.mtu_setting = 512;
  EXPECT_THAT(std::string(own.CheckAgreement(other).message()), HasSubstr("--verbs_mtu"));
}

}  // namespace
}  // namespace penstock
