// SPDX-License-Identifier: Apache-2.0
//
// The process that measures Penstock for tools/bench. Reads names of measurements from standard
// input, one per line. Answers each by running one round of the measurement and writing a line of
// JSON: {"value": number} or {"error": text}. The first line that it writes is {"ready":
// "Penstock"}. Prepares a measurement when it reads the name for the first time, and keeps it until
// it reads another name. With --task the process is one task of a cluster, which another process of
// this program measures.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tools/benchmark/calibration.h"
#include "tools/benchmark/data_pipeline.h"
#include "tools/benchmark/local_step.h"
#include "tools/benchmark/measured_cluster.h"

namespace penstock::benchmark {
namespace {

using Json = nlohmann::json;

StatusOr<Round> Prepare(const std::string& name, MeasuredCluster& cluster) {
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  if (parts.size() == 3 && parts[0] == "executor") return PrepareExecutor(parts[1], parts[2]);
  if (parts.size() == 3 && parts[0] == "null_step") {
    return cluster.PrepareNullStep(parts[1], parts[2]);
  }
  if (parts.size() == 3 && parts[0] == "transfer") {
    return cluster.PrepareTransfer(parts[1], parts[2]);
  }
  if (parts.size() == 4 && parts[0] == "all_reduce") {
    return cluster.PrepareAllReduce(parts[1], parts[2], parts[3]);
  }
  if (parts.size() == 2) {
    if (parts[0] == "calibration") return PrepareCalibration(parts[1]);
    if (parts[0] == "local_step") return PrepareLocalStep(parts[1]);
    if (parts[0] == "training") return PrepareTraining(parts[1]);
    if (parts[0] == "data") return PrepareData(parts[1]);
    if (parts[0] == "embedding") return PrepareEmbedding(parts[1]);
    if (parts[0] == "idle_server") return cluster.PrepareIdleServer(parts[1]);
  }
  return InvalidArgument("no measurement '", name, "'");
}

void Say(const Json& line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

void Measure() {
  Say({{"ready", "Penstock"}});
  MeasuredCluster cluster;
  std::string name, prepared;
  Round round;
  while (std::getline(std::cin, name)) {
    StatusOr<double> value = 0;
    if (name != prepared) {
      prepared.clear();
      round = nullptr;  // frees the old measurement before setting up the next one
      StatusOr<Round> next = Prepare(name, cluster);
      if (next.ok()) {
        round = *std::move(next);
        prepared = name;
      } else {
        value = next.status();
      }
    }
    if (round != nullptr) value = round();
    Say(value.ok() ? Json{{"value", *value}}
                   : Json{{"error", std::string(value.status().message())}});
  }
}

}  // namespace
}  // namespace penstock::benchmark

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == "--task") {
    return penstock::benchmark::RunMeasuredTask(argv[2], argv[3], argv[4]);
  }
  penstock::benchmark::Measure();
  return 0;
}
