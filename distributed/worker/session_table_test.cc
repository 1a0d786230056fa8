// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/session_table.h"

#include "core/base/forwarding_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kLeaseMs = 60'000;
constexpr int64_t kSecond = 1'000'000'000;
const TaskId kThis{.name = "/job:ps/replica:0/task:0", .address = "h:1", .incarnation = 5};

TaskId MasterOf(uint64_t incarnation) {
  return {.name = "/job:worker/replica:0/task:0", .address = "h:2", .incarnation = incarnation};
}

class LeaseClock final : public ForwardingEnv {
 public:
  LeaseClock() : ForwardingEnv(Env::Real()) {}
  int64_t NowNanos() override { return now_ns; }
  int64_t now_ns = 1;
};

class SessionTableTest : public testing::Test {
 protected:
  std::shared_ptr<WorkerSession> Add(const std::string& handle, const TaskId& master) {
    auto session = std::make_shared<WorkerSession>();
    session->options = {.handle = handle, .tasks = {master}, .lease_ms = kLeaseMs};
    table_.Add(session);
    return session;
  }
  std::vector<std::string> Expired() {
    std::vector<std::string> handles;
    for (const auto& expired : table_.FindExpired()) handles.push_back(expired.handle);
    return handles;
  }
  void Sleep(int64_t seconds) { clock_.now_ns += seconds * kSecond; }

  LeaseClock clock_;
  SessionTable table_{kThis, clock_};
};

TEST_F(SessionTableTest, ARepeatedAddChangesNothing) {
  const auto first = Add("s", MasterOf(1));
  const auto second = Add("s", MasterOf(1));
  EXPECT_EQ(*table_.Find("s"), first);
  EXPECT_EQ(table_.Remove("s").session, first);
  EXPECT_EQ(table_.Remove("s").session, nullptr);
  EXPECT_TRUE(table_.empty());
  const Status unknown = table_.Find("s").status();
  EXPECT_EQ(unknown.code(), StatusCode::kAborted);
  EXPECT_THAT(unknown.message(), HasSubstr("session s is not known to /job:ps"));
}

TEST_F(SessionTableTest, ALeaseEndsUnlessItIsRenewed) {
  Add("renewed", MasterOf(1));
  Add("silent", MasterOf(1));
  Sleep(59);
  EXPECT_THAT(table_.RenewLeases({"renewed", "unknown"}), ElementsAre("unknown"));
  EXPECT_THAT(Expired(), IsEmpty());
  Sleep(2);
  EXPECT_THAT(Expired(), ElementsAre("silent"));
}

TEST_F(SessionTableTest, ASupersededLeaseIsShorter) {
  Add("old", MasterOf(1));
  Add("new", MasterOf(2));
  Sleep(13);
  EXPECT_THAT(Expired(), ElementsAre("old"));
}

TEST_F(SessionTableTest, FindsTheSilentSessionsOfAMaster) {
  Add("heard", MasterOf(1));
  Add("other", MasterOf(2));
  Add("silent", MasterOf(1));
  Add("own", kThis);
  Sleep(5);
  EXPECT_THAT(table_.RenewLeases({"heard"}), IsEmpty());
  EXPECT_THAT(table_.HandlesOf(MasterOf(1), /*silent_only=*/true), ElementsAre("silent"));
  EXPECT_THAT(table_.HandlesOf(MasterOf(1), /*silent_only=*/false), ElementsAre("heard", "silent"));
  EXPECT_THAT(table_.HandlesOf(kThis, /*silent_only=*/false), IsEmpty());
}

TEST_F(SessionTableTest, AGraphOfARemovedSessionIsDropped) {
  const auto session = Add("s", MasterOf(1));
  table_.AddGraph(session, 3, nullptr);
  EXPECT_TRUE(table_.has_graphs());
  EXPECT_THAT(table_.FindGraph("s", 4).status().message(), HasSubstr("graph 4 of session s"));
  EXPECT_TRUE(table_.FindGraph("s", 3).ok());
  table_.RemoveGraph("s", 3);
  EXPECT_FALSE(table_.has_graphs());
  table_.Remove("s");
  const auto again = Add("s", MasterOf(1));
  table_.AddGraph(session, 3, nullptr);
  EXPECT_FALSE(table_.FindGraph("s", 3).ok()) << "it belongs to the session of before";
}

}  // namespace
}  // namespace penstock
