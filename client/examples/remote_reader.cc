// SPDX-License-Identifier: Apache-2.0
//
// Reads the variables of a running fashion_mnist cluster from another process. This client and the
// training have only the variables' names in common. Reading takes a snapshot of each variable, so
// it does not disturb the training.
//
//   remote_reader --target=grpc://127.0.0.1:2220
//
// The target may be any task of the cluster. Exit codes: 0 done, 1 an error, 2 a mistake in the
// flags.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "client/device_setter.h"
#include "client/examples/fashion_mnist_model.h"
#include "client/program.h"
#include "client/session.h"

namespace penstock::examples {
namespace {

// Returns the number of tasks of the job "ps"; NotFound if there are none.
StatusOr<int> CountServers(client::Session& session) {
  ASSIGN_OR_RETURN(const std::vector<DeviceInfo> devices, session.ListDevices());
  int count = 0;
  for (const DeviceInfo& device : devices) {
    if (device.name.job == "ps") count = std::max(count, device.name.task.value_or(0) + 1);
  }
  if (count == 0) return NotFound("the cluster has no parameter servers");
  return count;
}

std::string Describe(const Tensor& value) {
  if (value.dtype() != DType::kFloat) return value.ToString();
  double sum = 0, squares = 0;
  for (const float x : value.flat<float>()) {
    sum += x;
    squares += double{x} * x;
  }
  const double n = std::max<double>(1, value.num_elements()), mean = sum / n;
  char text[128];
  std::snprintf(text, sizeof(text), "mean %9.6f  deviation %9.6f", mean,
                std::sqrt(std::max(0.0, squares / n - mean * mean)));
  return StrCat("float", value.shape().ToString(), "  ", text);
}

Status Read(const std::string& target, const std::string& model) {
  const SessionOptions options{.operation_timeout_ms = 20'000, .device_filters = {"/job:ps"}};
  client::Program nothing;
  ASSIGN_OR_RETURN(const auto asking, client::Session::New(nothing, target, options));
  ASSIGN_OR_RETURN(const int servers, CountServers(*asking));

  // Make the variables in the same order as the training program, so that they are placed on the
  // same tasks.
  client::Program program;
  const auto scope = program.DeviceFunctionScope(
      client::ReplicaDeviceSetter({.ps_tasks = servers,
                                   .worker_device = "/job:ps/task:0",
                                   .balance = client::Balance::kBytes}));
  RETURN_IF_ERROR(MakeModel(program, model, 1, servers).status());
  (void)program.GlobalStep();
  ASSIGN_OR_RETURN(const auto session, client::Session::New(program, target, options));
  for (const client::Variable& variable : program.variables()) {
    ASSIGN_OR_RETURN(const Tensor value, session->Fetch(variable));
    std::printf("%-24s %-16s %s\n", variable.name().c_str(), variable.device().c_str(),
                Describe(value).c_str());
  }
  return OkStatus();
}

int Main(int argc, char** argv) {
  std::string target, model = "mlp";
  CLI::App app("Reads the variables of a running fashion_mnist cluster.");
  app.add_option("--target", target, "grpc://host:port of any task")->required();
  app.add_option("--model", model, "mlp or convnet: the --model of the training")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "remote_reader: %s; --help lists the flags\n", error.what());
    return 2;
  }
  const Status status = Read(target, model);
  if (status.ok()) return 0;
  std::fprintf(stderr, "remote_reader: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

}  // namespace
}  // namespace penstock::examples

int main(int argc, char** argv) { return penstock::examples::Main(argc, argv); }
