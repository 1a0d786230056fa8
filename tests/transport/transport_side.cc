// SPDX-License-Identifier: Apache-2.0
//
// The program with which tools/bench measures transports without sessions, and the host's limits
// with which it compares them. Reads names of measurements, one per line. Answers each by running
// one round and writing {"value": number} or {"error": text}:
//
//   messages/WAY/SIZE   messages per second, with many messages in flight at a time
//   bytes/WAY/SIZE      GB/s of one message at a time
//
// WAY: grpc or shm (transports), tcp, cma or memcpy (limits.h). SIZE: 1KB to 256MB.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/transport/limits.h"
#include "tests/transport/measured_ends.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

constexpr int64_t kBytesMax = int64_t{256} << 20;
constexpr double kRoundSeconds = 0.4;  // as in tools/benchmark/rounds.h

StatusOr<int64_t> BytesOf(string_view size) {
  const bool kilo = absl::ConsumeSuffix(&size, "KB");
  int64_t number = 0;
  if ((!kilo && !absl::ConsumeSuffix(&size, "MB")) || !absl::SimpleAtoi(size, &number)) {
    return InvalidArgument("size '", size, "': expected a number followed by KB or MB");
  }
  if (number < 1 || number > kBytesMax >> (kilo ? 10 : 20)) {
    return InvalidArgument("size ", number, kilo ? "KB" : "MB", ": expected 1KB to 256MB");
  }
  return number << (kilo ? 10 : 20);
}

// Returns the number of messages of a round: enough for about 64 MB, so that the time of starting
// and waiting is negligible.
int64_t CountOf(int64_t bytes) {
  return std::clamp<int64_t>((int64_t{64} << 20) / bytes, 1, 2000);
}

class Side {
 public:
  Side(Limits& limits, FILE* from) : limits_(limits), shm_("shm", from), grpc_("grpc", from) {}

  StatusOr<double> Round(const std::string& name) {
    const std::vector<std::string> parts = absl::StrSplit(name, '/');
    if (parts.size() != 3 || (parts[0] != "messages" && parts[0] != "bytes")) {
      return InvalidArgument("no measurement '", name, "'");
    }
    ASSIGN_OR_RETURN(const int64_t bytes, BytesOf(parts[2]));
    const int64_t count = parts[0] == "messages" ? CountOf(bytes) : 1;
    ASSIGN_OR_RETURN(const double seconds, MedianSeconds(parts[1], bytes, count));
    if (parts[0] == "messages") return static_cast<double>(count) / seconds;
    return static_cast<double>(bytes) / seconds / 1e9;
  }

 private:
  StatusOr<double> MedianSeconds(const std::string& way, int64_t bytes, int64_t count) {
    RETURN_IF_ERROR(Seconds(way, bytes, count).status());  // warm-up
    std::vector<double> all;
    double sum = 0;
    while (all.empty() || sum < kRoundSeconds) {
      ASSIGN_OR_RETURN(const double seconds, Seconds(way, bytes, count));
      all.push_back(seconds);
      sum += seconds;
    }
    std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
    return all[all.size() / 2];
  }
  StatusOr<double> Seconds(const std::string& way, int64_t bytes, int64_t count) {
    if (way == "shm") return shm_.Receive(bytes, count);
    if (way == "grpc") return grpc_.Receive(bytes, count);
    return limits_.Seconds(way, bytes, count);
  }

  Limits& limits_;
  MeasuredConsumer shm_, grpc_;
};

void Say(const Json& line) { std::cout << line.dump() << std::endl; }

void Measure(Limits& limits, FILE* from) {
  Side side(limits, from);
  Say({{"ready", "Penstock's transports"}});
  std::string name;
  while (std::getline(std::cin, name)) {
    const StatusOr<double> value = side.Round(name);
    Say(value.ok() ? Json{{"value", *value}}
                   : Json{{"error", std::string(value.status().message())}});
  }
}

}  // namespace
}  // namespace penstock

int main() {
  int to[2], from[2];
  CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
  // Forks both processes before there are threads.
  const pid_t producer = fork();
  if (producer == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(to[1]);
    penstock::RunProducer({"shm", "grpc"}, from[1], to[0]);
    _exit(0);
  }
  penstock::Limits limits(penstock::kBytesMax);
  close(to[0]);
  FILE* const answers = fdopen(from[0], "r");
  penstock::Measure(limits, answers);
  close(to[1]);
  kill(producer, SIGKILL);
  waitpid(producer, nullptr, 0);
  std::fclose(answers);
  return 0;
}
