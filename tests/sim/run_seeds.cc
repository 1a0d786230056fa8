// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/run_seeds.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/env.h"
#include "core/base/log.h"

namespace penstock::simulation {
namespace {

// A message from a child to its parent: a sequence of fields. The length of each field comes before
// its bytes.
class Message {
 public:
  void Add(string_view field) {
    const uint64_t size = field.size();
    bytes_.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes_.append(field.data(), field.size());
  }
  void AddNumber(double number) { Add({reinterpret_cast<const char*>(&number), sizeof number}); }
  void WriteTo(int fd) const {
    size_t sent = 0;
    while (sent < bytes_.size()) {
      const ssize_t count = write(fd, bytes_.data() + sent, bytes_.size() - sent);
      if (count <= 0) return;
      sent += static_cast<size_t>(count);
    }
  }

 private:
  std::string bytes_;
};

class Fields {
 public:
  explicit Fields(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string Next() {
    uint64_t size = 0;
    if (bytes_.size() - at_ < sizeof size) return failed_ = true, "";
    std::memcpy(&size, bytes_.data() + at_, sizeof size);
    at_ += sizeof size;
    if (bytes_.size() - at_ < size) return failed_ = true, "";
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  double NextNumber() {
    const std::string field = Next();
    double number = 0;
    if (field.size() == sizeof number) std::memcpy(&number, field.data(), sizeof number);
    return number;
  }
  bool failed() const { return failed_; }

 private:
  const std::string bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

uint64_t HashOf(string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

void RunInChild(const SimRunOptions& options, bool want_log, int fd) {
  // Turns the log off: its lines have the real time, so two runs of a seed would differ.
  SetLogOptions({.level = LogLevel::kOff});
  Message message;
  const StatusOr<SimRunResult> ran = RunSimulation(options);
  message.Add(ran.ok() ? "" : ran.status().ToString());
  const SimRunResult run = ran.ok() ? *ran : SimRunResult();
  message.AddNumber(static_cast<double>(run.violations.size()));
  for (const std::string& violation : run.violations) message.Add(violation);
  const uint64_t hash = HashOf(run.log);
  message.Add({reinterpret_cast<const char*>(&hash), sizeof hash});
  message.Add(want_log ? run.log : "");
  message.Add(run.timeline);
  message.Add(run.weights);
  message.AddNumber(run.simulated_seconds);
  message.AddNumber(static_cast<double>(run.points.size()));
  for (const auto& [name, reached] : run.points) {
    message.Add(name);
    message.AddNumber(static_cast<double>(reached.times));
    message.AddNumber(static_cast<double>(reached.fired));
  }
  message.WriteTo(fd);
  close(fd);
}

// Reads until the child has closed its end of the pipe, or the time limit is reached. Sets `*late`
// to whether the limit was reached.
std::string ReadAll(int fd, int limit_seconds, bool* late) {
  const int64_t until_ns = Env::Real().NowNanos() + int64_t{1'000'000'000} * limit_seconds;
  std::string bytes;
  char buffer[65536];
  for (;;) {
    const int64_t left_ms = (until_ns - Env::Real().NowNanos()) / 1'000'000;
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    *late = left_ms <= 0 || poll(&ready, 1, static_cast<int>(left_ms)) == 0;
    if (*late) return bytes;
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count <= 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(count));
  }
}

StatusOr<SimSeedResult> Parse(std::string bytes, const std::string& ended) {
  Fields fields(std::move(bytes));
  const std::string mistake = fields.Next();
  SimSeedResult result;
  if (fields.failed()) {
    result.run.violations = {"crash: the simulation ended with " + ended};
    return result;
  }
  if (!mistake.empty()) return InvalidArgument(mistake);
  SimRunResult& run = result.run;
  for (auto left = static_cast<int>(fields.NextNumber()); left > 0; --left) {
    run.violations.push_back(fields.Next());
  }
  const std::string hash = fields.Next();
  if (hash.size() == sizeof result.log_hash)
    std::memcpy(&result.log_hash, hash.data(), hash.size());
  run.log = fields.Next();
  run.timeline = fields.Next();
  run.weights = fields.Next();
  run.simulated_seconds = fields.NextNumber();
  for (auto left = static_cast<int>(fields.NextNumber()); left > 0; --left) {
    const std::string name = fields.Next();
    const auto times = static_cast<int64_t>(fields.NextNumber());
    run.points[name] = {.times = times, .fired = static_cast<int64_t>(fields.NextNumber())};
  }
  return result;
}

}  // namespace

StatusOr<SimSeedResult> RunSeed(const SimRunOptions& options, bool want_log, int limit_seconds) {
  const int64_t began_ns = Env::Real().NowNanos();
  int ends[2];
  if (pipe(ends) != 0) return Internal("no pipe: errno ", errno);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return Internal("no child: errno ", errno);
  if (child == 0) {
    close(ends[0]);
    RunInChild(options, want_log, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  bool late = false;
  std::string bytes = ReadAll(ends[0], limit_seconds, &late);
  close(ends[0]);
  if (late) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  const std::string ended = late ? StrCat("its time limit of ", limit_seconds, " s")
                            : WIFSIGNALED(status) ? StrCat("signal ", WTERMSIG(status))
                                                  : StrCat("code ", WEXITSTATUS(status));
  ASSIGN_OR_RETURN(SimSeedResult result, Parse(std::move(bytes), ended));
  result.real_seconds = static_cast<double>(Env::Real().NowNanos() - began_ns) * 1e-9;
  return result;
}

Status ExpectWeights(SimRunOptions* options) {
  SimRunOptions plain{.plan = {.replicas = options->plan.replicas}, .steps = options->steps};
  plain.faults = false;
  plain.deterministic = options->deterministic;
  ASSIGN_OR_RETURN(const SimSeedResult result, RunSeed(plain));
  if (!result.run.violations.empty()) {
    return Internal("a run without faults failed: ", result.run.violations[0], "\n",
                    result.run.timeline);
  }
  options->expected_weights = result.run.weights;
  return OkStatus();
}

StatusOr<std::vector<int>> ShrinkPlan(const SimRunOptions& options, int* runs) {
  SimRunOptions run = options;
  FaultPlanOptions all = options.plan;
  if (all.hosts.empty()) all.hosts = SimHosts(all.replicas);
  std::vector<int> left = all.only;
  if (left.empty()) {
    ASSIGN_OR_RETURN(const std::vector<Fault> plan, MakeFaultPlan(all));
    for (size_t i = 0; i < plan.size(); ++i) left.push_back(static_cast<int>(i));
  }
  *runs = 0;
  for (size_t i = 0; i < left.size() && left.size() > 1;) {
    std::vector<int> fewer = left;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    run.plan.only = fewer;
    ++*runs;
    ASSIGN_OR_RETURN(const SimSeedResult result, RunSeed(run));
    if (result.run.violations.empty()) {
      ++i;
    } else {
      left = fewer;
      i = 0;
    }
  }
  return left;
}

int NumSeeds(int usual, int parts) {
  const char* const seeds = std::getenv("PENSTOCK_SIM_SEEDS");
  return seeds == nullptr ? usual : std::max(parts, std::atoi(seeds));
}

}  // namespace penstock::simulation
