// SPDX-License-Identifier: Apache-2.0
//
// Tests both ends of a call, Worker.Reset, on a loopback port.
#include "distributed/calls/unary_call.h"

#include <atomic>
#include <future>
#include <vector>

#include "core/base/cond_var.h"
#include "core/base/testing/eventually.h"
#include "distributed/calls/testing/test_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/penstock/worker.grpc.pb.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using Service = wire::Worker::AsyncService;
using Incoming = UnaryCall<Service, wire::ResetRequest, wire::ResetResponse>;

constexpr auto kSoon = std::chrono::seconds(30);

class UnaryCallTest : public testing::Test {
 protected:
  void Serve(Incoming::Handler handler) {
    host_.host().builder->RegisterService(&service_);
    host_.Start();
    Incoming::Listen(std::make_shared<const Incoming::Endpoint>(Incoming::Endpoint{
        &service_, &Service::RequestReset, &host_.loop(), host_.host().queue, std::move(handler)}));
  }
  // Begins a call; returns its status in a future.
  std::future<Status> Call(int64_t timeout_ms, const std::string& container = "") {
    auto ended = std::make_shared<std::promise<Status>>();
    wire::ResetRequest request;
    request.add_container(container);
    const std::shared_ptr<wire::Worker::Stub> stub =
        wire::Worker::NewStub(host_.host().channels->To(host_.address()));
    ClientCall<wire::ResetResponse>::Start(
        host_.loop(), "ps 0", timeout_ms,
        [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
          return stub->PrepareAsyncReset(context, request, queue);
        },
        [ended, stub](const Status& status, wire::ResetResponse&) { ended->set_value(status); });
    return ended->get_future();
  }
  static Status Get(std::future<Status> ended) {
    if (ended.wait_for(kSoon) != std::future_status::ready) return Internal("has not ended");
    return ended.get();
  }

  Service service_;
  TestHost host_;
};

TEST_F(UnaryCallTest, AnswersSeveralCallsInARow) {
  Serve([](const std::shared_ptr<Incoming>& call) {
    const std::string& text = call->request().container(0);
    call->Finish(text.empty() ? OkStatus() : NotFound("no container ", text));
  });
  EXPECT_EQ(Get(Call(10'000)), OkStatus());
  EXPECT_EQ(Get(Call(10'000, "c")), NotFound("no container c")) << "the callee's own words";
  EXPECT_EQ(Get(Call(10'000)), OkStatus());
}

TEST_F(UnaryCallTest, ManyWaitAtTheSameTimeWithoutAThread) {
  Mutex mu;
  CondVar all_here;
  std::vector<std::shared_ptr<Incoming>> waiting;
  Serve([&](std::shared_ptr<Incoming> call) {
    MutexLock lock(mu);
    waiting.push_back(std::move(call));
    all_here.NotifyAll();
  });
  std::vector<std::future<Status>> calls;
  for (int i = 0; i < 50; ++i) calls.push_back(Call(30'000));
  {
    MutexLock lock(mu);
    while (waiting.size() < 50) ASSERT_TRUE(all_here.WaitFor(mu, kSoon));
  }
  for (const auto& call : waiting) {
    EXPECT_FALSE(call->given_up());
    call->Finish(OkStatus());
  }
  waiting.clear();
  for (auto& call : calls) EXPECT_EQ(Get(std::move(call)), OkStatus());
}

TEST_F(UnaryCallTest, OnCancelRunsWhenTheClientGivesUp) {
  std::promise<void> gone;
  Serve([&](const std::shared_ptr<Incoming>& call) {
    call->OnCancel([&gone, call] {
      EXPECT_TRUE(call->given_up());
      call->Finish(Cancelled("too late"));
      gone.set_value();
    });
  });
  const Status status = Get(Call(200));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps 0: ")) << "the task is named";
  EXPECT_EQ(gone.get_future().wait_for(kSoon), std::future_status::ready);
}

TEST_F(UnaryCallTest, OnCancelAfterTheCancellationRunsAtOnce) {
  std::promise<std::shared_ptr<Incoming>> came;
  Serve([&](std::shared_ptr<Incoming> call) { came.set_value(std::move(call)); });
  auto ended = Call(200);
  const auto call = came.get_future().get();
  EXPECT_EQ(Get(std::move(ended)).code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(Eventually([&] { return call->given_up(); }));
  bool told = false;
  call->OnCancel([&] { told = true; });
  EXPECT_TRUE(told);
  call->Finish(OkStatus());
}

// Finish says whether the answer was sent, so that a handler can undo what only its caller can use.
TEST_F(UnaryCallTest, AnAnswerThatArrivesIsSent) {
  std::atomic<int> unsent = 0;
  Serve([&](const std::shared_ptr<Incoming>& call) {
    call->Finish(OkStatus(), [&] { ++unsent; });
  });
  EXPECT_EQ(Get(Call(30'000)), OkStatus());
  host_.Stop();  // waits until the call has ended here, too
  EXPECT_EQ(unsent, 0);
}

TEST_F(UnaryCallTest, AnAnswerAfterTheCancellationIsUnsent) {
  std::promise<std::shared_ptr<Incoming>> came;
  std::promise<void> told;
  std::atomic<int> unsent = 0;
  Serve([&](std::shared_ptr<Incoming> call) { came.set_value(std::move(call)); });
  auto ended = Call(200);
  auto call = came.get_future().get();
  EXPECT_TRUE(Eventually([&] { return call->given_up(); }));
  call->Finish(OkStatus(), [&] {
    if (++unsent == 1) told.set_value();
  });
  call = nullptr;
  EXPECT_EQ(told.get_future().wait_for(kSoon), std::future_status::ready);
  EXPECT_EQ(Get(std::move(ended)).code(), StatusCode::kDeadlineExceeded);
  host_.Stop();
  EXPECT_EQ(unsent, 1);
}

TEST_F(UnaryCallTest, NobodyIsThere) {
  host_.Start();
  const Status status = Get(Call(10'000));
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << status;
}

TEST_F(UnaryCallTest, NothingBeginsInAProcessThatShutsDown) {
  host_.Start();
  host_.Stop();
  EXPECT_EQ(Get(Call(10'000)), Cancelled("this process is shutting down"));
}

TEST(ParseTest, BytesThatAreNoMessageAreAnError) {
  wire::ResetRequest request;
  request.add_container("c");
  grpc::ByteBuffer bytes = BytesOf(request);
  wire::ResetRequest parsed;
  ASSERT_EQ(Parse(&bytes, &parsed), OkStatus());
  EXPECT_EQ(parsed.container(0), "c");
  EXPECT_EQ(bytes.Length(), 0u) << "the bytes are let go";
  const grpc::Slice slice("\xff\xff\xff\xff\xff");
  grpc::ByteBuffer wrong(&slice, 1);
  EXPECT_EQ(Parse(&wrong, &parsed), InvalidArgument("malformed message"));
}

}  // namespace
}  // namespace penstock
