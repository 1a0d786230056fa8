// SPDX-License-Identifier: Apache-2.0
//
// The two ends of a measured transport: a producer's process that sends as many tensors as a
// subscription asks for, and a consumer that measures how long it takes to receive them.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "distributed/calls/testing/test_host.h"
#include "distributed/transport/testing/test_key.h"
#include "distributed/transport/transport_factory.h"

namespace penstock {

// The producer's steps. The step id encodes the payload: id >> 24 is the bytes of a tensor, (id >>
// 12) & 0xfff is the number of tensors.
class MeasuredSender final : public TaskSteps {
 public:
  void Subscribe(const std::string&, int64_t step_id, std::shared_ptr<TensorSink> sink) override {
    const int64_t bytes = step_id >> 24, count = step_id >> 12 & 0xfff;
    Tensor& value = values_[bytes];
    if (!value.valid()) {
      value = Tensor(DType::kUint8, Shape({bytes}));
      std::memset(value.mutable_raw_data(), 1, value.bytes());
    }
    for (int64_t i = 0; i < count; ++i) {
      sink->Send(step_id, key_.In(1, static_cast<uint64_t>(1 + i)), value, false, [] {});
    }
  }
  void Deliver(int64_t, const HashedKey&, Tensor, bool) override {}
  void Fail(int64_t, const Status&) override {}

 private:
  const HashedKey key_ = TestKey("edge");
  std::map<int64_t, Tensor> values_;
};

class MeasuredReceiver final : public TaskSteps {
 public:
  void Subscribe(const std::string&, int64_t, std::shared_ptr<TensorSink>) override {}
  void Deliver(int64_t, const HashedKey&, Tensor, bool) override {
    if (left_.fetch_sub(1) == 1) left_.notify_one();
  }
  void Fail(int64_t, const Status& why) override { CHECK_OK(why); }
  void Expect(int64_t count) { left_ = count; }
  void Wait() {
    for (int64_t left = left_; left > 0; left = left_) left_.wait(left);
  }

 private:
  std::atomic<int64_t> left_ = 0;
};

// One end of a transport.
struct MeasuredEnd {
  MeasuredEnd(const std::string& protocol, const char* job, TaskSteps& steps)
      : transport(*TransportFactory::Global().Make(protocol, {.grpc = &host.host()})) {
    host.Start();
    id = {StrCat("/job:", job, "/replica:0/task:0"), host.address(), Env::Real().RandomU64() | 1};
    CHECK_OK(transport->Serve(id, steps));
  }
  ~MeasuredEnd() {
    transport->Stop();
    host.Stop();
  }
  TestHost host;
  std::unique_ptr<Transport> transport;
  TaskId id;
};

// Serves all protocols in this process until `from` is closed. Writes a line with address and
// incarnation to `to` for each protocol.
inline void RunProducer(const std::vector<std::string>& protocols, int to, int from) {
  MeasuredSender steps;
  std::vector<std::unique_ptr<MeasuredEnd>> ends;
  for (const std::string& protocol : protocols) {
    ends.push_back(std::make_unique<MeasuredEnd>(protocol, "ps", steps));
    const std::string line =
        StrCat(ends.back()->id.address, " ", ends.back()->id.incarnation, "\n");
    CHECK(write(to, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  }
  char none = 0;
  while (read(from, &none, 1) > 0) {
  }
}

class MeasuredConsumer {
 public:
  MeasuredConsumer(const std::string& protocol, FILE* from) : end_(protocol, "worker", steps_) {
    char address[256];
    unsigned long long incarnation = 0;
    CHECK(std::fscanf(from, "%255s %llu", address, &incarnation) == 2);
    ps_ = {"/job:ps/replica:0/task:0", address, incarnation};
  }
  // Returns the seconds until `count` tensors of `bytes` have been received.
  double Receive(int64_t bytes, int64_t count) {
    const int64_t step_id = bytes << 24 | count << 12 | (++serial_ & 0xfff);
    steps_.Expect(count);
    const int64_t begin = Env::Real().NowNanos();
    end_.transport->Subscribe(ps_, step_id);
    steps_.Wait();
    const int64_t nanos = Env::Real().NowNanos() - begin;
    end_.transport->Unsubscribe(ps_, step_id);
    return static_cast<double>(nanos) / 1e9;
  }

 private:
  MeasuredReceiver steps_;
  MeasuredEnd end_;
  TaskId ps_;
  int64_t serial_ = 0;
};

}  // namespace penstock
