// SPDX-License-Identifier: Apache-2.0
//
// The program that tools/sim runs: simulates trainings with the faults of given seeds.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <optional>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/env.h"
#include "tests/sim/run_seeds.h"

namespace penstock::simulation {
namespace {

constexpr int kFailed = 1, kMistake = 2;

struct Flags {
  std::string seeds = "0..199", faults, hosts, only, bug, replicas = "both";
  int64_t seed = -1, steps = 40;
  double hours = 0;
  std::string log = "out/sim.log";
  bool trace = false, check_determinism = false, list_points = false, no_mishaps = false;
};

struct Seeds {
  uint64_t from = 0, to = 0;  // the first and the last seed
};

StatusOr<Seeds> ParseSeeds(const Flags& flags) {
  if (flags.seed >= 0)
    return Seeds{static_cast<uint64_t>(flags.seed), static_cast<uint64_t>(flags.seed)};
  Seeds seeds;
  if (std::sscanf(flags.seeds.c_str(), "%" SCNu64 "..%" SCNu64, &seeds.from, &seeds.to) != 2 ||
      seeds.from > seeds.to) {
    return InvalidArgument("--seeds=", flags.seeds, " is not FROM..TO");
  }
  return seeds;
}

class Command {
 public:
  explicit Command(const Flags& flags) : flags_(flags) {}

  StatusOr<int> Run() {
    ASSIGN_OR_RETURN(const Seeds seeds, ParseSeeds(flags_));
    if (flags_.replicas != "both" && flags_.replicas != "1" && flags_.replicas != "2") {
      return InvalidArgument("--ps_replicas=", flags_.replicas, " is none of 1, 2, both");
    }
    options_[0].plan.replicas = false, options_[1].plan.replicas = true;
    for (SimRunOptions& options : options_) RETURN_IF_ERROR(SetUp(&options));
    if (flags_.hours > 0) {
      RETURN_IF_ERROR(RunForHours());
    } else {
      for (uint64_t seed = seeds.from; seed <= seeds.to; ++seed) RETURN_IF_ERROR(RunOne(seed));
    }
    Report();
    return failures_ == 0 ? 0 : kFailed;
  }

 private:
  // Runs seeds after the last seed in the log file, and appends each seed to the file after its
  // run.
  Status RunForHours() {
    Env& env = Env::Real();
    uint64_t seed = 0;
    if (const auto old = env.ReadFile(flags_.log); old.ok()) {
      for (const auto& line : absl::StrSplit(*old, '\n')) {
        uint64_t done = 0;
        if (std::sscanf(std::string(line).c_str(), "seed %" SCNu64, &done) == 1) seed = done + 1;
      }
    }
    const size_t slash = flags_.log.rfind('/');
    if (slash != std::string::npos) {
      RETURN_IF_ERROR(env.CreateDirectories(flags_.log.substr(0, slash)));
    }
    std::FILE* const log = std::fopen(flags_.log.c_str(), "a");
    if (log == nullptr) return InvalidArgument("--log: cannot append to ", flags_.log);
    const auto until_ns = env.NowNanos() + static_cast<int64_t>(flags_.hours * 3.6e12);
    Status status;
    for (; status.ok() && env.NowNanos() < until_ns; ++seed) {
      const int64_t failures = failures_;
      status = RunOne(seed);
      std::fprintf(log, "seed %" PRIu64 " %s\n", seed,
                   failures_ == failures ? "passed" : last_failure_.c_str());
      std::fflush(log);
    }
    std::fclose(log);
    return status;
  }

  Status SetUp(SimRunOptions* options) const {
    options->steps = flags_.steps;
    options->mishaps = !flags_.no_mishaps;
    if (!flags_.faults.empty()) options->plan.kinds = absl::StrSplit(flags_.faults, ',');
    RETURN_IF_ERROR(SetHosts(&options->plan));
    if (!flags_.bug.empty()) options->bugs = absl::StrSplit(flags_.bug, ',');
    for (const auto& each : absl::StrSplit(flags_.only, ',', absl::SkipEmpty())) {
      options->plan.only.push_back(std::atoi(std::string(each).c_str()));
    }
    return OkStatus();
  }

  Status SetHosts(FaultPlanOptions* plan) const {
    const bool used = flags_.replicas == "both" || (flags_.replicas == "2") == plan->replicas;
    if (flags_.hosts.empty() || !used) return OkStatus();
    plan->hosts = absl::StrSplit(flags_.hosts, ',');
    if (plan->hosts.size() < 2) return InvalidArgument("--hosts: expected two or more");
    const std::vector<std::string> known = SimHosts(plan->replicas);
    for (const std::string& host : plan->hosts) {
      if (std::find(known.begin(), known.end(), host) != known.end()) continue;
      return InvalidArgument("--hosts: '", host, "' is none of ", absl::StrJoin(known, ", "));
    }
    return OkStatus();
  }

  Status RunOne(uint64_t seed) {
    // With --replicas=both, every third seed has replicas.
    const bool replicas = flags_.replicas == "2" || (flags_.replicas == "both" && seed % 3 == 2);
    SimRunOptions& options = options_[replicas ? 1 : 0];
    if (options.expected_weights.empty()) RETURN_IF_ERROR(ExpectWeights(&options));
    options.plan.seed = seed;
    ASSIGN_OR_RETURN(const SimSeedResult result, RunSeed(options, flags_.trace));
    ++runs_;
    simulated_ += result.run.simulated_seconds;
    real_ += result.real_seconds;
    for (const auto& [name, reached] : result.run.points) {
      reached_[name].times += reached.times;
      reached_[name].fired += reached.fired;
    }
    if (flags_.trace) std::printf("%s", result.run.log.c_str());
    if (flags_.seed >= 0) std::printf("%s", result.run.timeline.c_str());
    std::string why = result.run.violations.empty() ? "" : result.run.violations[0];
    if (why.empty() && flags_.check_determinism) {
      ASSIGN_OR_RETURN(const SimSeedResult again, RunSeed(options));
      if (again.log_hash != result.log_hash) why = "the log differs from that of another run";
    }
    if (!why.empty()) return Explain(options, result, why);
    return OkStatus();
  }

  Status Explain(const SimRunOptions& options, const SimSeedResult& result,
                 const std::string& why) {
    ++failures_;
    last_failure_ = "FAILED: " + why;
    std::printf("seed %" PRIu64 " FAILED: %s\n", options.plan.seed, why.c_str());
    int runs = 0;
    ASSIGN_OR_RETURN(const std::vector<int> left, ShrinkPlan(options, &runs));
    SimRunOptions fewer = options;
    fewer.plan.only = left;
    ASSIGN_OR_RETURN(const SimSeedResult shrunk, RunSeed(fewer));
    const bool fails = !shrunk.run.violations.empty();
    const SimRunResult& shown = fails ? shrunk.run : result.run;
    for (const auto& line : absl::StrSplit(shown.timeline, '\n', absl::SkipEmpty())) {
      std::printf("  | %s\n", std::string(line).c_str());
    }
    if (fails)
      std::printf("  fails with %zu of its faults: %s\n", left.size(),
                  shrunk.run.violations[0].c_str());
    std::printf("  repeat it: tools/sim --seed=%" PRIu64 " --steps=%" PRId64 "%s%s%s%s%s%s%s\n",
                options.plan.seed, flags_.steps,
                options.plan.replicas ? " --ps_replicas=2" : " --ps_replicas=1",
                flags_.faults.empty() ? "" : StrCat(" --faults=", flags_.faults).c_str(),
                flags_.hosts.empty() ? "" : StrCat(" --hosts=", flags_.hosts).c_str(),
                flags_.bug.empty() ? "" : StrCat(" --bug=", flags_.bug).c_str(),
                flags_.no_mishaps ? " --no_mishaps" : "", fails ? " --only=" : "",
                fails ? absl::StrJoin(left, ",").c_str() : "");
    std::fflush(stdout);
    return OkStatus();
  }

  void Report() const {
    std::printf("%" PRId64 " seeds, %" PRId64
                " failed; %.0f s simulated in %.1f s, %.0f times as "
                "fast as real time\n",
                runs_, failures_, simulated_, real_, simulated_ / std::max(real_, 1e-9));
    int fired = 0, reached = 0, all = 0;
    std::string not_reached;
    for (const FaultPoint* point : FaultPoint::All()) {
      const auto found = reached_.find(point->name());
      const bool is_reached = found != reached_.end();
      ++all;
      reached += is_reached ? 1 : 0;
      fired += is_reached && found->second.fired > 0 ? 1 : 0;
      if (!is_reached) not_reached += StrCat(" ", point->name());
    }
    std::printf("%d fault points, %d reached, %d fired%s%s\n", all, reached, fired,
                not_reached.empty() ? "" : "; never reached:", not_reached.c_str());
  }

  const Flags& flags_;
  SimRunOptions options_[2];
  int64_t runs_ = 0, failures_ = 0;
  std::string last_failure_;
  double simulated_ = 0, real_ = 0;
  std::map<std::string, SimRunResult::Reached> reached_;
};

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "Trains on a simulated cluster (client, 3 workers, 2 ps) under the faults that seeds decide, "
      "and checks what the runtime promises.");
  app.add_option("--seed", flags.seed, "one seed; prints what happened");
  app.add_option("--seeds", flags.seeds, "FROM..TO, both included")->capture_default_str();
  app.add_option("--hours", flags.hours, "on from the last seed of --log, until time is over");
  app.add_option("--log", flags.log, "of --hours: a line for each seed")->capture_default_str();
  app.add_option("--faults", flags.faults, absl::StrJoin(FaultNames(), ","));
  app.add_option("--hosts", flags.hosts, "that faults hit: worker-0,ps-0,ps-0b ...");
  app.add_option("--only", flags.only, "of the faults of a seed those with these indices");
  app.add_option("--steps", flags.steps, "of the training")->capture_default_str();
  app.add_option("--ps_replicas", flags.replicas, "1, 2 or both")->capture_default_str();
  app.add_option("--bug", flags.bug, "plants bugs, by the names of --list_points");
  app.add_flag("--no_mishaps", flags.no_mishaps, "no fault points fire");
  app.add_flag("--trace", flags.trace, "prints each message");
  app.add_flag("--check-determinism", flags.check_determinism, "runs each seed twice");
  app.add_flag("--list_points", flags.list_points, "lists the fault points");
  CLI11_PARSE(app, argc, argv);
  if (flags.list_points) {
    for (const FaultPoint* point : FaultPoint::All()) {
      std::printf("%-7s %-34s %s\n", point->kind() == FaultPoint::kBug ? "bug" : "mishap",
                  point->name(), point->what());
    }
    return 0;
  }
  const StatusOr<int> code = Command(flags).Run();
  if (code.ok()) return *code;
  std::fprintf(stderr, "sim: %s\n", std::string(code.status().message()).c_str());
  return kMistake;
}

}  // namespace
}  // namespace penstock::simulation

int main(int argc, char** argv) { return penstock::simulation::Main(argc, argv); }
