// SPDX-License-Identifier: Apache-2.0
//
// Measures how long a transport takes to notice faults of a peer, with real processes.
//
//   transport_faults PROTOCOL FAULT [COMMAND]
//
//   kill, freeze            signals the producer while it sends (SIGKILL, SIGSTOP)
//   kill_idle, freeze_idle  signals the producer while nothing is sent
//   kill_consumer, freeze_consumer  signals the consumer
//   run, run_idle           runs COMMAND instead, which cuts the network
//
// Prints one line. Exit status: 0 if within 8 s the other task's step fails, or all of its tensors
// are handed over.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "core/base/env.h"
#include "tests/transport/test_task.h"

namespace penstock {
namespace {

constexpr int64_t kNoticedNanosMax = 8'000'000'000;
constexpr int64_t kWaitNanos = 20'000'000;
constexpr int kWarmTensors = 8;

HashedKey Key(uint64_t iteration) {
  return HashedKey({.src_device = "/job:ps/replica:0/task:0/device:CPU:0",
                    .src_incarnation = 7,
                    .dst_device = "/job:worker/replica:0/task:0/device:CPU:0",
                    .tensor = "edge",
                    .frame = 1,
                    .iteration = iteration});
}

// Sends until the process ends or `stop` is set. If the consumer does not read, the last tensors
// stay pending.
void SendTensors(TensorSink& sink, bool idle, std::atomic<int>& pending,
                 const std::atomic<bool>& stop) {
  const Tensor small = Tensor::Scalar(1.0f), large(DType::kFloat, Shape({1 << 18}));
  for (uint64_t i = 1; !stop && (!idle || i <= kWarmTensors); ++i) {
    for (int n = 0; n < 1000 && pending >= 64 && !stop; ++n) Env::Real().SleepForNanos(kWaitNanos);
    ++pending;
    sink.Send(1, Key(i), i % 2 == 0 ? small : large, false, [&pending] { --pending; });
    Env::Real().SleepForNanos(1'000'000);
  }
}

struct Peer {
  pid_t pid;
  FILE* from;
};

// Starts a process that prints its task's address and incarnation, then does `work`.
template <class Work>
Peer StartPeer(const std::string& protocol, const char* job, Work work) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t pid = fork();  // fork before there are threads
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    TestTask task(protocol, job);
    const std::string line = StrCat(task.id().address, " ", task.id().incarnation, "\n");
    CHECK(write(ends[1], line.data(), line.size()) == static_cast<ssize_t>(line.size()));
    work(task);
    _exit(0);
  }
  close(ends[1]);
  return {pid, fdopen(ends[0], "r")};
}

TaskId IdOf(const Peer& peer, const char* job) {
  char address[256];
  unsigned long long incarnation = 0;
  CHECK(std::fscanf(peer.from, "%255s %llu", address, &incarnation) == 2);
  return {StrCat("/job:", job, "/replica:0/task:0"), address, incarnation};
}

// Returns true when `done`, or false after 20 s.
template <class Done>
bool WaitFor(Done done) {
  for (int i = 0; i < 1000 && !done(); ++i) Env::Real().SleepForNanos(kWaitNanos);
  return done();
}

void Strike(const std::string& fault, const char* command, pid_t pid) {
  if (fault.starts_with("kill")) CHECK(kill(pid, SIGKILL) == 0);
  if (fault.starts_with("freeze")) CHECK(kill(pid, SIGSTOP) == 0);
  if (fault.starts_with("run")) CHECK(std::system(command) == 0, command);
}

int Report(const std::string& fault, bool noticed, int64_t nanos, const std::string& how) {
  const bool good = noticed && nanos < kNoticedNanosMax;
  std::printf("%s %s: %s after %.1f s: %s\n", good ? "ok" : "FAILED", fault.c_str(),
              noticed ? "noticed" : "not noticed", static_cast<double>(nanos) / 1e9, how.c_str());
  std::fflush(stdout);
  return good ? 0 : 1;
}

int FaultOfProducer(const std::string& protocol, const std::string& fault, const char* command) {
  const bool idle = fault.ends_with("_idle");
  const Peer peer = StartPeer(protocol, "ps", [idle](TestTask& task) {
    std::atomic<int> pending = 0;
    const std::atomic<bool> never = false;
    SendTensors(*task.steps().WaitForSink("/job:worker/replica:0/task:0", 1), idle, pending, never);
    pause();
  });
  TestTask worker(protocol, "worker");
  const TaskId ps = IdOf(peer, "ps");
  worker.transport().Subscribe(ps, 1);
  CHECK(WaitFor([&] { return worker.steps().received().size() >= kWarmTensors; }));
  std::atomic<bool> ended = false;
  std::thread reader([&] {  // drops received tensors, to limit memory
    while (!ended) {
      worker.steps().ForgetTensors();
      Env::Real().SleepForNanos(kWaitNanos);
    }
  });
  if (idle) Env::Real().SleepForNanos(1'500'000'000);
  Strike(fault, command, peer.pid);
  const int64_t begin = Env::Real().NowNanos();
  const bool noticed = WaitFor([&] { return worker.steps().has_failed(1); });
  const int64_t nanos = Env::Real().NowNanos() - begin;
  ended = true;
  reader.join();
  const Status why = noticed ? worker.steps().WaitForFailure(1) : OkStatus();
  const bool names = why.message().find(ps.ToString()) != string_view::npos;
  kill(peer.pid, SIGKILL);
  waitpid(peer.pid, nullptr, 0);
  return Report(fault, noticed && names, nanos, why.ToString());
}

int FaultOfConsumer(const std::string& protocol, const std::string& fault) {
  int to[2];
  CHECK(pipe(to) == 0);
  const Peer peer = StartPeer(protocol, "worker", [&to](TestTask& task) {
    TaskId ps;
    char line[512] = {};
    CHECK(read(to[0], line, sizeof(line) - 1) > 0);
    char address[256];
    unsigned long long incarnation = 0;
    CHECK(std::sscanf(line, "%255s %llu", address, &incarnation) == 2);
    task.transport().Subscribe({"/job:ps/replica:0/task:0", address, incarnation}, 1);
    while (true) {
      task.steps().ForgetTensors();
      Env::Real().SleepForNanos(kWaitNanos);
    }
  });
  TestTask ps(protocol, "ps");
  (void)IdOf(peer, "worker");
  const std::string line = StrCat(ps.id().address, " ", ps.id().incarnation, "\n");
  CHECK(write(to[1], line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  const auto sink = ps.steps().WaitForSink("/job:worker/replica:0/task:0", 1);
  std::atomic<int> pending = 0;
  std::atomic<bool> stop = false;
  std::thread sender([&] { SendTensors(*sink, /*idle=*/false, pending, stop); });
  Env::Real().SleepForNanos(1'000'000'000);
  Strike(fault, nullptr, peer.pid);
  const int64_t begin = Env::Real().NowNanos();
  Env::Real().SleepForNanos(500'000'000);  // waits until more tensors are pending
  stop = true;
  sender.join();
  const bool noticed = WaitFor([&] { return pending == 0; });
  const int64_t nanos = Env::Real().NowNanos() - begin;
  kill(peer.pid, SIGKILL);
  waitpid(peer.pid, nullptr, 0);
  return Report(fault, noticed, nanos, StrCat(pending.load(), " tensors still wait"));
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: transport_faults PROTOCOL FAULT [COMMAND]\n");
    return 2;
  }
  const std::string fault = argv[2];
  if (fault.ends_with("_consumer")) return penstock::FaultOfConsumer(argv[1], fault);
  return penstock::FaultOfProducer(argv[1], fault, argc > 3 ? argv[3] : "true");
}
