// SPDX-License-Identifier: Apache-2.0
//
// Our side of tools/bench. Reads the names of measurements from standard input, a line each, and
// answers each with a line of JSON: {"value": number} or {"error": text}. The first line it writes
// says what it is. With --task it is one task of a cluster that another of its kind measures.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "absl/strings/str_split.h"
#include "client/session.h"
#include "core/base/env.h"
#include "tools/benchmark/measured_cluster.h"
#include "tools/benchmark/workloads.h"

namespace penstock::benchmark {
namespace {

using client::Program;
using client::Session;
using Json = nlohmann::json;

StatusOr<double> MeasureExecutor(const std::string& shape, const std::string& kind) {
  Program program;
  ASSIGN_OR_RETURN(const ExecutorGraph graph, BuildExecutorGraph(program, shape, kind));
  SessionOptions options;
  options.optimize = false;  // the executor is measured, not the optimiser that would empty the graph
  ASSIGN_OR_RETURN(auto session, Session::New(program, "", options));
  ASSIGN_OR_RETURN(const client::Callable run,
                   session->MakeCallable({graph.x}, {}, {graph.target}));
  const std::vector<Tensor> feeds = {Tensor::Scalar<float>(1)};
  ASSIGN_OR_RETURN(const double seconds, MedianSeconds([&] { return run(feeds).status(); }));
  return graph.nodes / seconds;
}

StatusOr<double> MeasureLocalStep(const std::string& how) {
  Program program;
  const Output x =
      CallIn(program, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", Shape()}});
  const Output y = x + 1.0;
  ASSIGN_OR_RETURN(auto session, Session::New(program));
  const Tensor one = Tensor::Scalar<float>(1);
  if (how == "callable") {
    ASSIGN_OR_RETURN(const client::Callable run, session->MakeCallable({x}, {y}));
    const std::vector<Tensor> feeds = {one};
    ASSIGN_OR_RETURN(const double seconds, MedianSeconds([&] { return run(feeds).status(); }));
    return seconds * 1e6;
  }
  const std::string x_name = x.name(), y_name = y.name();
  ASSIGN_OR_RETURN(const double seconds, MedianSeconds([&] {
                     return session->Run({{x_name, one}}, {y_name}).status();
                   }));
  return seconds * 1e6;
}

StatusOr<double> MeasureTraining(const std::string& model) {
  Program program;
  ASSIGN_OR_RETURN(const TrainingGraph graph, BuildTraining(program, model));
  ASSIGN_OR_RETURN(auto session, Session::New(program));
  RETURN_IF_ERROR(session->Execute(graph.init));
  ASSIGN_OR_RETURN(const client::Callable run,
                   session->MakeCallable({graph.images, graph.labels}, {}, {graph.train}));
  std::mt19937 random(1);
  Tensor images(DType::kFloat, Shape({128, 784})), labels(DType::kInt32, Shape({128}));
  for (float& v : images.mutable_flat<float>()) v = std::uniform_real_distribution<float>()(random);
  for (int i = 0; i < 128; ++i) labels.mutable_data<int32_t>()[i] = i % 10;
  const std::vector<Tensor> feeds = {images, labels};
  ASSIGN_OR_RETURN(const double seconds, MedianSeconds([&] { return run(feeds).status(); }));
  return seconds * 1e3;
}

StatusOr<double> Measure(const std::string& name, MeasuredCluster& cluster) {
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  if (parts.size() == 3 && parts[0] == "executor") return MeasureExecutor(parts[1], parts[2]);
  if (parts.size() != 2) return InvalidArgument("no measurement '", name, "'");
  if (parts[0] == "local_step") return MeasureLocalStep(parts[1]);
  if (parts[0] == "training") return MeasureTraining(parts[1]);
  if (parts[0] == "null_step" || parts[0] == "transfer") return cluster.Measure(parts[0], parts[1]);
  if (parts[0] == "idle_server") return cluster.MeasureIdleServer(parts[1]);
  return InvalidArgument("no measurement '", name, "'");
}

void Say(const Json& line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--task") return RunMeasuredTask(argv[2]);
  Say({{"ready", "Penstock"}});
  MeasuredCluster cluster;
  std::string name;
  while (std::getline(std::cin, name)) {
    const StatusOr<double> value = Measure(name, cluster);
    Say(value.ok() ? Json{{"value", *value}}
                   : Json{{"error", std::string(value.status().message())}});
  }
  return 0;
}

}  // namespace
}  // namespace penstock::benchmark

int main(int argc, char** argv) { return penstock::benchmark::Main(argc, argv); }
