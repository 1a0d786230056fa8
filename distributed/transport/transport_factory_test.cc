// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/transport_factory.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

StatusOr<std::unique_ptr<Transport>> Needy(const TransportHost& host) {
  return FailedPrecondition("needy: there is no server");
}

TEST(TransportFactoryTest, UnknownProtocolsAreErrorsThatListTheKnownOnes) {
  TransportFactory factory;
  EXPECT_TRUE(factory.Add("rdma", Needy));
  EXPECT_TRUE(factory.Add("grpc", Needy));
  EXPECT_EQ(factory.protocols(), (std::vector<std::string>{"grpc", "rdma"}));
  EXPECT_EQ(factory.Make("carrier pigeon", {}).status(),
            InvalidArgument("--protocol: 'carrier pigeon' is not known; write one of grpc, rdma"));
  EXPECT_EQ(factory.Make("grpc", {}).status(), FailedPrecondition("needy: there is no server"));
}

TEST(TransportFactoryTest, NamesAreUnique) {
  TransportFactory factory;
  factory.Add("grpc", Needy);
  EXPECT_DEATH(factory.Add("grpc", Needy), "two transports are called grpc");
}

}  // namespace
}  // namespace penstock
