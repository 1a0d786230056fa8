// SPDX-License-Identifier: Apache-2.0
//
// Measures sending tensors between two processes by one protocol, compared with gRPC and with
// memcpy within one process. The three take turns, so only the ratios within one run are
// meaningful.
//
//   bazel run //tests/transport:transport_benchmark [-- PROTOCOL [ROUNDS [BYTES_MAX]]]
//
// Defaults: shm, 15 rounds, up to 256 MB.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "distributed/rpc/calls/testing/test_host.h"
#include "distributed/transport/transport_factory.h"

namespace penstock {
namespace {

constexpr int64_t kBytesMin = int64_t{1} << 10;

struct Options {
  std::string protocol = "shm";
  int rounds = 15;
  int64_t bytes_max = int64_t{256} << 20;

  std::vector<std::string> protocols() const { return {protocol, "grpc"}; }
  // Returns how many tensors a step sends: enough for about 64 MB, so that a round takes some
  // milliseconds.
  int64_t CountOf(int64_t bytes) const {
    return std::clamp<int64_t>(std::min(bytes_max, int64_t{64} << 20) / bytes, 1, 2000);
  }
};

HashedKey Key() {
  return HashedKey({.src_device = "/job:ps/replica:0/task:0/device:CPU:0",
                    .src_incarnation = 7,
                    .dst_device = "/job:worker/replica:0/task:0/device:CPU:0",
                    .tensor = "edge",
                    .frame = 0,
                    .iteration = 0});
}

// The producer's steps. The step id encodes the payload: id >> 24 is the bytes of a tensor, (id >>
// 12) & 0xfff is the number of tensors.
class Sender final : public TaskSteps {
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
  const HashedKey key_ = Key();
  std::map<int64_t, Tensor> values_;
};

class Receiver final : public TaskSteps {
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
struct End {
  End(const std::string& protocol, const char* job, TaskSteps& steps)
      : transport(*TransportFactory::Global().Make(protocol, {.grpc = &host.host()})) {
    host.Start();
    id = {StrCat("/job:", job, "/replica:0/task:0"), host.address(), Env::Real().RandomU64() | 1};
    CHECK_OK(transport->Serve(id, steps));
  }
  ~End() {
    transport->Stop();
    host.Stop();
  }
  TestHost host;
  std::unique_ptr<Transport> transport;
  TaskId id;
};

// Serves until `parent` closes its pipe.
void RunProducer(const Options& options, int to, int from) {
  Sender steps;
  std::vector<std::unique_ptr<End>> ends;
  for (const std::string& protocol : options.protocols()) {
    ends.push_back(std::make_unique<End>(protocol, "ps", steps));
    const std::string line =
        StrCat(ends.back()->id.address, " ", ends.back()->id.incarnation, "\n");
    CHECK(write(to, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  }
  char none = 0;
  while (read(from, &none, 1) > 0) {
  }
}

class Consumer {
 public:
  Consumer(const std::string& protocol, FILE* from) : end_(protocol, "worker", steps_) {
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
  Receiver steps_;
  End end_;
  TaskId ps_;
  int64_t serial_ = 0;
};

double Copy(const std::vector<char>& from, std::vector<char>* to, int64_t bytes, int64_t count) {
  const int64_t begin = Env::Real().NowNanos();
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to->data(), from.data(), static_cast<size_t>(bytes));
    asm volatile("" : : "r"(to->data()) : "memory");
  }
  return static_cast<double>(Env::Real().NowNanos() - begin) / 1e9;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Measure(const Options& options, FILE* from) {
  Consumer measured(options.protocol, from), grpc("grpc", from);
  const std::vector<char> source(static_cast<size_t>(options.bytes_max), 1);
  std::vector<char> target(static_cast<size_t>(options.bytes_max), 2);
  std::printf("%s beside grpc\n", options.protocol.c_str());
  std::printf("%10s %12s %9s %9s %9s %9s %9s %10s %9s\n", "bytes", "messages/s", "GB/s",
              "grpc GB/s", "memcpy", "/grpc", "/memcpy", "one, us", "grpc, us");
  for (int64_t bytes = kBytesMin; bytes <= options.bytes_max; bytes *= 4) {
    const int64_t count = options.CountOf(bytes);
    std::vector<double> a, b, c, one_a, one_b;
    for (int i = -1; i < options.rounds; ++i) {  // round -1 is the warm-up
      const double times[] = {measured.Receive(bytes, count), grpc.Receive(bytes, count),
                              Copy(source, &target, bytes, count), measured.Receive(bytes, 1),
                              grpc.Receive(bytes, 1)};
      if (i < 0) continue;
      a.push_back(times[0]);
      b.push_back(times[1]);
      c.push_back(times[2]);
      one_a.push_back(times[3]);
      one_b.push_back(times[4]);
    }
    const double total = static_cast<double>(bytes * count) / 1e9;
    std::printf("%10ld %12.0f %9.2f %9.2f %9.2f %9.2f %9.2f %10.1f %9.1f\n", bytes,
                static_cast<double>(count) / Median(a), total / Median(a), total / Median(b),
                total / Median(c), Median(b) / Median(a), Median(c) / Median(a),
                Median(one_a) * 1e6, Median(one_b) * 1e6);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  penstock::Options options;
  if (argc > 1) options.protocol = argv[1];
  if (argc > 2) options.rounds = std::max(1, std::atoi(argv[2]));
  if (argc > 3) options.bytes_max = std::max(penstock::kBytesMin, std::atol(argv[3]));
  int there[2], back[2];
  CHECK(pipe(there) == 0 && pipe(back) == 0);
  const pid_t producer = fork();  // fork before there are threads
  if (producer == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(there[1]);
    penstock::RunProducer(options, back[1], there[0]);
    _exit(0);
  }
  close(there[0]);
  FILE* const from = fdopen(back[0], "r");
  penstock::Measure(options, from);
  close(there[1]);
  waitpid(producer, nullptr, 0);
  std::fclose(from);
  return 0;
}
