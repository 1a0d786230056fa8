// SPDX-License-Identifier: Apache-2.0
//
// Measures sending tensors between two processes with one protocol, compared with gRPC and with
// memcpy within one process. The three are measured in turns; only the ratios within one run are
// meaningful.
//
//   bazel run //tests/transport:transport_benchmark [-- PROTOCOL [ROUNDS [BYTES_MAX]]]
//
// Defaults: shm, 15 rounds, up to 256 MB.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/transport/measured_ends.h"

namespace penstock {
namespace {

constexpr int64_t kBytesMin = int64_t{1} << 10;

struct Options {
  std::string protocol = "shm";
  int rounds = 15;
  int64_t bytes_max = int64_t{256} << 20;

  // Returns how many tensors a step sends: enough for about 64 MB, so that a round takes some
  // milliseconds.
  int64_t CountOf(int64_t bytes) const {
    return std::clamp<int64_t>(std::min(bytes_max, int64_t{64} << 20) / bytes, 1, 2000);
  }
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
  MeasuredConsumer measured(options.protocol, from), grpc("grpc", from);
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
    penstock::RunProducer({options.protocol, "grpc"}, back[1], there[0]);
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
