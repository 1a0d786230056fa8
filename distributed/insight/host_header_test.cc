// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/host_header.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

const std::vector<std::string> kNames = {"worker0.example", "gateway"};

TEST(HostHeaderTest, LetsInWhoCallsTheTaskByItsName) {
  for (const char* header :
       {"", "localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:8000", "10.1.2.3:80", "[::1]",
        "[::1]:8000", "[fe80::1]:8000", "worker0.example:8000", "Worker0.Example.", "gateway"}) {
    EXPECT_EQ(CheckHostHeader(header, kNames), OkStatus()) << header;
  }
}

TEST(HostHeaderTest, RefusesOtherSites) {
  for (const char* header :
       {"evil.example", "evil.example:8000", "localhost.evil.example",
        "127.0.0.1.evil.example:8000", "worker0.example.evil.example", "[evil.example]:8000",
        "0x7f000001", ":80", "evil.example:localhost", " localhost", "127.1"}) {
    const Status status = CheckHostHeader(header, kNames);
    EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << header;
  }
  EXPECT_EQ(CheckHostHeader("evil.example:8000", {}).message(),
            "this task is not called 'evil.example'. If it is, start it with "
            "--status_hosts=evil.example; or ask for it by its address in numbers");
}

}  // namespace
}  // namespace penstock
