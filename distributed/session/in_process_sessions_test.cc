// SPDX-License-Identifier: Apache-2.0
#include "distributed/session/in_process_sessions.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

// A session that does nothing; it keeps the arguments of its constructor.
class FakeSession final : public SessionInterface {
 public:
  FakeSession(int maker, const SessionOptions& options) : maker(maker), options(options) {}
  Status Extend(const Graph&) override { return OkStatus(); }
  Status Run(const RunOptions&, const Feeds&, const std::vector<std::string>&,
             const std::vector<std::string>&, std::vector<Tensor>*, RunMetadata*) override {
    return OkStatus();
  }
  StatusOr<CallableId> MakeCallable(const CallableSpec&) override { return 1; }
  Status RunCallable(CallableId, const RunOptions&, absl::Span<const Tensor>, std::vector<Tensor>*,
                     RunMetadata*) override {
    return OkStatus();
  }
  Status ReleaseCallable(CallableId) override { return OkStatus(); }
  StatusOr<std::string> SetUpPartialRun(const CallableSpec&) override { return std::string("1"); }
  Status RunPartial(const std::string&, const RunOptions&, const Feeds&,
                    const std::vector<std::string>&, std::vector<Tensor>*) override {
    return OkStatus();
  }
  StatusOr<std::vector<DeviceInfo>> ListDevices() override { return std::vector<DeviceInfo>(); }
  Status Close() override { return OkStatus(); }

  const int maker;
  const SessionOptions options;
};

void Add(const std::string& address, int maker) {
  InProcessSessions::Add(address, [maker](const SessionOptions& options) {
    return std::make_unique<FakeSession>(maker, options);
  });
}
// Returns the maker of a new session at `address`; 0 if there is none.
int MakerAt(const std::string& address) {
  const auto session = InProcessSessions::New(address, {.operation_timeout_ms = 7});
  if (session == nullptr) return 0;
  const auto& fake = dynamic_cast<const FakeSession&>(*session);
  EXPECT_EQ(fake.options.operation_timeout_ms, 7);
  return fake.maker;
}

TEST(InProcessSessionsTest, AreFoundByTheirServersAddress) {
  EXPECT_EQ(MakerAt("127.0.0.1:1"), 0);
  Add("127.0.0.1:1", 1);
  Add("127.0.0.1:2", 2);
  EXPECT_EQ(MakerAt("127.0.0.1:1"), 1);
  EXPECT_EQ(MakerAt("127.0.0.1:2"), 2);
  EXPECT_EQ(MakerAt("localhost:1"), 0) << "addresses are compared as they are written";
  InProcessSessions::Remove("127.0.0.1:1");
  InProcessSessions::Remove("127.0.0.1:1");
  EXPECT_EQ(MakerAt("127.0.0.1:1"), 0);
  EXPECT_EQ(MakerAt("127.0.0.1:2"), 2);
  InProcessSessions::Remove("127.0.0.1:2");
}

// A server that is restarted in this process has the same address.
TEST(InProcessSessionsTest, TheLastServerOfAnAddressCounts) {
  Add("127.0.0.1:1", 1);
  Add("127.0.0.1:1", 2);
  EXPECT_EQ(MakerAt("127.0.0.1:1"), 2);
  InProcessSessions::Remove("127.0.0.1:1");
  EXPECT_EQ(MakerAt("127.0.0.1:1"), 0);
}

}  // namespace
}  // namespace penstock
