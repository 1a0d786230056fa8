// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "client/program.h"
#include "client/session.h"
#include "core/base/env.h"
#include "core/op/gradient.h"
#include "distributed/rpc/server.h"
#include "tools/benchmark/measured_cluster.h"

namespace penstock::benchmark {
namespace {

using client::Callable;
using client::Program;
using client::Session;
using client::Variable;
using Json = nlohmann::json;

// The step that a worker repeats. "null_step" reads one number from the ps and adds one to it;
// "transfer N" reads N bytes; "all_reduce N RANKS COUNT" sums N bytes of each worker, COUNT times.
struct RemoteStep {
  Program program;
  std::unique_ptr<Session> session;
  std::unique_ptr<Callable> run;
  int64_t count = 0;  // steps in a round; 0: as many as the time allows
};

StatusOr<std::vector<int64_t>> Numbers(const std::string& text) {
  std::vector<int64_t> numbers;
  for (const auto& word : absl::StrSplit(text, ' ')) {
    if (!absl::SimpleAtoi(word, &numbers.emplace_back())) {
      return InvalidArgument("'", text, "': expected numbers");
    }
  }
  return numbers;
}

// Prepares an all-reduce. Each worker runs its own copy of the step; all must take the same number
// of steps.
StatusOr<std::unique_ptr<RemoteStep>> PrepareAllReduce(const Server& server,
                                                       const std::string& what,
                                                       const std::string& here) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, Numbers(what));
  if (numbers.size() != 3) return InvalidArgument("all_reduce ", what, ": expected 3 numbers");
  auto step = std::make_unique<RemoteStep>();
  step->count = numbers[2];
  Program& program = step->program;
  const auto device = program.DeviceScope(here);
  const Variable v(program, "own", Shape({numbers[0] / 4}), client::Ones(), {.local = true});
  const Output sum = Call("CollectiveReduce", {v.Read()},
                          {{"group_key", numbers[0]},
                           {"group_size", numbers[1]},
                           {"instance_key", 1},
                           {"merge_op", "Add"},
                           {"final_op", "Id"},
                           {"subdiv_offsets", std::vector<int64_t>{0}}});
  const Output init = program.Initialize({v});
  RETURN_IF_ERROR(program.status());
  ASSIGN_OR_RETURN(step->session, Session::New(program, server.target(), SessionOptions()));
  RETURN_IF_ERROR(step->session->Execute(init));
  ASSIGN_OR_RETURN(Callable run, step->session->MakeCallable({}, {}, {sum}));
  step->run = std::make_unique<Callable>(std::move(run));
  return step;
}

// Returns the median time of a step, in seconds.
StatusOr<double> Measure(RemoteStep& step) {
  const auto run = [&] { return (*step.run)().status(); };
  if (step.count == 0) return MedianSeconds(run);
  std::vector<double> seconds;
  for (int64_t i = 0; i < step.count; ++i) {
    const int64_t begin = Env::Real().NowNanos();
    RETURN_IF_ERROR(run());
    seconds.push_back(static_cast<double>(Env::Real().NowNanos() - begin) * 1e-9);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

StatusOr<Output> AddStep(Program& program, const std::string& what, const std::string& here,
                         Output* init) {
  int64_t bytes = 4;
  const bool transfer = what.rfind("transfer ", 0) == 0;
  if (transfer && !absl::SimpleAtoi(what.substr(9), &bytes)) {
    return InvalidArgument("no step '", what, "'");
  }
  Output value;
  {
    const auto ps = program.DeviceScope("/job:ps/task:0");
    const Variable v(program, StrCat("v_", bytes), Shape({bytes / 4}), client::Ones());
    *init = program.Initialize({v});
    value = v.Read();
  }
  const auto device = program.DeviceScope(here);
  const Output result = transfer ? Identity(value) : value + 1.0;
  RETURN_IF_ERROR(program.status());
  return result;
}

StatusOr<std::unique_ptr<RemoteStep>> Prepare(const Server& server, const std::string& what,
                                              const std::string& here) {
  constexpr char kAllReduce[] = "all_reduce ";
  if (what.rfind(kAllReduce, 0) == 0) {
    return PrepareAllReduce(server, what.substr(sizeof(kAllReduce) - 1), here);
  }
  auto step = std::make_unique<RemoteStep>();
  Output init;
  ASSIGN_OR_RETURN(const Output target, AddStep(step->program, what, here, &init));
  SessionOptions options;
  options.device_filters = {"/job:ps", here};
  ASSIGN_OR_RETURN(step->session, Session::New(step->program, server.target(), options));
  RETURN_IF_ERROR(step->session->Execute(init));
  ASSIGN_OR_RETURN(Callable run, step->session->MakeCallable({}, {}, {target}));
  step->run = std::make_unique<Callable>(std::move(run));
  return step;
}

void Say(const Json& line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

StatusOr<ClusterSpec> ReadCluster() {
  std::string line;
  std::getline(std::cin, line);
  ClusterSpec cluster;
  const Json jobs = Json::parse(line);
  for (const auto& [job, addresses] : jobs.items()) {
    int index = 0;
    for (const Json& address : addresses) {
      RETURN_IF_ERROR(cluster.AddTask(job, index++, address.get<std::string>()));
    }
  }
  return cluster;
}

StatusOr<std::unique_ptr<Server>> Serve(const std::string& job, int index,
                                        const std::string& protocol) {
  TaskConfig task = {.job = job, .task = index, .protocol = protocol};
  RETURN_IF_ERROR(task.cluster.AddTask(job, index, "127.0.0.1:0"));
  ASSIGN_OR_RETURN(auto server, Server::Create({.task = task}));
  Say({{"address", server->address()}});
  ASSIGN_OR_RETURN(const ClusterSpec cluster, ReadCluster());
  RETURN_IF_ERROR(server->SetCluster(cluster));
  RETURN_IF_ERROR(server->Start());
  Say({{"serves", true}});
  return server;
}

Status ServeAndMeasure(const std::string& job, int index, const std::string& protocol) {
  ASSIGN_OR_RETURN(const auto server, Serve(job, index, protocol));
  const std::string here = StrCat("/job:", job, "/task:", index);
  std::string what, prepared;
  std::unique_ptr<RemoteStep> step;
  while (std::getline(std::cin, what)) {
    if (what != prepared) {
      ASSIGN_OR_RETURN(step, Prepare(*server, what, here));
      prepared = what;
    }
    ASSIGN_OR_RETURN(const double seconds, Measure(*step));
    Say({{"value", seconds}});
  }
  return OkStatus();
}

}  // namespace

int RunMeasuredTask(const std::string& job, const std::string& index, const std::string& protocol) {
  int number = 0;
  if (!absl::SimpleAtoi(index, &number)) return 2;
  const Status served = ServeAndMeasure(job, number, protocol);
  if (!served.ok()) Say({{"error", std::string(served.message())}});
  return served.ok() ? 0 : 1;
}

}  // namespace penstock::benchmark
