// SPDX-License-Identifier: Apache-2.0
#include "distributed/calls/status_proto.h"

#include "core/base/error_origin.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(StatusProtoTest, MessagesKeepCodeAndText) {
  for (int code = 0; code <= 16; ++code) {
    const Status status(static_cast<StatusCode>(code), code == 0 ? "" : "it went wrong");
    wire::Error error;
    ToProto(status, &error);
    EXPECT_EQ(error.code(), code);
    EXPECT_EQ(FromProto(error), status);
    EXPECT_EQ(FromGrpc(ToGrpc(status), ""), status);
  }
}

TEST(StatusProtoTest, TheOriginOfAnErrorIsKept) {
  const Status status = WithTask(AtNode(Internal("why"), "n"), "/job:ps/replica:0/task:1");
  wire::Error error;
  ToProto(status, &error);
  EXPECT_EQ(FromProto(error), status);
  EXPECT_EQ(FromGrpc(ToGrpc(status), "x"), status);
  const Status by_library = FromGrpc(ToGrpc(AtNode(Cancelled("why"), "n")), "the ps");
  EXPECT_EQ(by_library.message(), "the ps: why\n\t [[{{node n}}]]");
  EXPECT_EQ(FailedNode(by_library), "n");
}

TEST(StatusProtoTest, LongPayloadsAreLeftOut) {
  const Status status = WithNode(Internal("why"), std::string(2000, 'x'));
  EXPECT_EQ(FromGrpc(ToGrpc(status), ""), Internal("why"));
}

TEST(StatusProtoTest, DetailsOfOtherProgramsAreIgnored) {
  const grpc::Status status(grpc::StatusCode::INTERNAL, "why", "\x0a\xff\xff");
  EXPECT_EQ(FromGrpc(status, ""), Internal("why"));
}

TEST(StatusProtoTest, CodesThatDoNotExistAreUnknown) {
  wire::Error error;
  error.set_code(static_cast<tensorflow::error::Code>(99));
  error.set_message("from the future");
  EXPECT_EQ(FromProto(error), Unknown("from the future"));
}

TEST(StatusProtoTest, LongTrailersAreTruncated) {
  const grpc::Status status = ToGrpc(Internal(std::string(10'000, 'x')));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(status.error_message(), StrCat(std::string(3072, 'x'), " ... [truncated]"));
}

TEST(StatusProtoTest, TheLibrarysErrorsNameTheTask) {
  using grpc::StatusCode;
  const auto named = [](StatusCode code) {
    return std::string(FromGrpc(grpc::Status(code, "why"), "the ps").message());
  };
  EXPECT_EQ(named(StatusCode::UNAVAILABLE), "the ps: why");
  EXPECT_EQ(named(StatusCode::DEADLINE_EXCEEDED), "the ps: why");
  EXPECT_EQ(named(StatusCode::CANCELLED), "the ps: why");
  EXPECT_EQ(named(StatusCode::UNKNOWN), "the ps: why");
  EXPECT_EQ(named(StatusCode::ABORTED), "why");
  EXPECT_TRUE(FromGrpc(grpc::Status::OK, "the ps").ok());
}

}  // namespace
}  // namespace penstock
