// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/health_service.h"

#include <chrono>
#include <memory>
#include <string>

#include "distributed/calls/testing/test_host.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr std::chrono::seconds kHealthSoon(30);

class HealthServiceTest : public testing::Test {
 protected:
  HealthServiceTest() {
    host_.host().builder->RegisterService(&health_.service());
    host_.Start();
    health_.Listen(host_.loop(), *host_.host().queue);
    stub_ = Health::NewStub(host_.host().channels->To(host_.address()));
  }
  ~HealthServiceTest() override { host_.Stop(); }

  HealthCheckRequest Ask(const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    return request;
  }
  grpc::Status Check(const std::string& service, HealthCheckResponse* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kHealthSoon);
    return stub_->Check(&context, Ask(service), response);
  }

  // One call of Watch.
  struct Watching {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> calls;
    // Returns the next status; UNKNOWN, which is never sent, if the call has ended.
    HealthCheckResponse::ServingStatus Next() {
      HealthCheckResponse response;
      return calls->Read(&response) ? response.status() : HealthCheckResponse::UNKNOWN;
    }
  };
  std::unique_ptr<Watching> Watch(const std::string& service) {
    auto watching = std::make_unique<Watching>();
    watching->context.set_deadline(std::chrono::system_clock::now() + kHealthSoon);
    watching->calls = stub_->Watch(&watching->context, Ask(service));
    return watching;
  }

  HealthService health_{{"a.Service"}};  // outlives the host's server
  TestHost host_;
  std::unique_ptr<Health::Stub> stub_;
};

TEST_F(HealthServiceTest, CheckTellsTheStatus) {
  for (const bool serving : {false, true, false}) {
    health_.SetServing(serving);
    for (const char* service : {"", "a.Service"}) {
      HealthCheckResponse response;
      ASSERT_TRUE(Check(service, &response).ok());
      EXPECT_EQ(response.status(),
                serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
    }
  }
}

TEST_F(HealthServiceTest, CheckRefusesAnUnknownService) {
  HealthCheckResponse response;
  const grpc::Status status = Check("b.Service", &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "no service 'b.Service'");
}

TEST_F(HealthServiceTest, LongNamesAreRefused) {
  const std::string name(201, 'n');
  HealthCheckResponse response;
  EXPECT_EQ(Check(name, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const auto watching = Watch(name);
  EXPECT_EQ(watching->Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(watching->calls->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(HealthServiceTest, WatchSendsEachChange) {
  const auto whole = Watch(""), one = Watch("a.Service"), unknown = Watch("b.Service");
  EXPECT_EQ(whole->Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(one->Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(unknown->Next(), HealthCheckResponse::SERVICE_UNKNOWN);
  for (const bool serving : {true, false, true}) {
    health_.SetServing(serving);
    health_.SetServing(serving);  // changes nothing, so nothing is sent
    const auto expected = serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
    EXPECT_EQ(whole->Next(), expected);
    EXPECT_EQ(one->Next(), expected);
  }
}

TEST_F(HealthServiceTest, AClientMayEndItsWatch) {
  const auto left = Watch(""), kept = Watch("");
  EXPECT_EQ(left->Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(kept->Next(), HealthCheckResponse::NOT_SERVING);
  left->context.TryCancel();
  EXPECT_EQ(left->calls->Finish().error_code(), grpc::StatusCode::CANCELLED);
  health_.SetServing(true);
  EXPECT_EQ(kept->Next(), HealthCheckResponse::SERVING);
}

TEST_F(HealthServiceTest, EndWatchesEndsPresentAndLaterOnes) {
  const auto present = Watch("");
  EXPECT_EQ(present->Next(), HealthCheckResponse::NOT_SERVING);
  health_.EndWatches();
  EXPECT_EQ(present->Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(present->calls->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  const auto later = Watch("");
  EXPECT_EQ(later->Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(later->calls->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(HealthServiceTest, TheServerEndsWhileAClientWatches) {
  const auto watching = Watch("");
  EXPECT_EQ(watching->Next(), HealthCheckResponse::NOT_SERVING);
  host_.Stop();
  EXPECT_EQ(watching->Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_FALSE(watching->calls->Finish().ok());
}

}  // namespace
}  // namespace penstock
