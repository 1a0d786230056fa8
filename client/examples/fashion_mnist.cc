// SPDX-License-Identifier: Apache-2.0
//
// Trains a classifier of the Fashion-MNIST pictures, on a cluster of which every task is this
// program: a ps serves, a worker serves and trains. README.md shows how to start one.
//
// Exit codes: 0 done, 1 an error that stays, 2 a mistake in the flags; try again: 129 a task was
// lost and did not come back in time, 143 a signal has ended the training early.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client/examples/fashion_mnist_flags.h"
#include "client/examples/fashion_mnist_training.h"
#include "client/stop_signal.h"
#include "distributed/server.h"

namespace penstock::examples {
namespace {

constexpr int kError = 1, kMistake = 2, kTaskLost = 129, kStopped = 143;
constexpr int64_t kShutdownMs = 5'000;

int Report(const Status& status, int code) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "fashion_mnist: %s\n", std::string(status.message()).c_str());
  return code;
}

int CodeOf(const Status& status) {
  if (absl::IsCancelled(status)) return kStopped;
  const bool task_lost =
      absl::IsUnavailable(status) || absl::IsAborted(status) || absl::IsDeadlineExceeded(status);
  return task_lost ? kTaskLost : kError;
}

// Serves until another task asks for the end, or a signal does.
void Serve(Server& server) {
  client::StopSignal stop(/*grace_seconds=*/0);
  Cancellation::Token token;
  const auto end = [&](const Status&) { server.RequestShutdown("a signal asked it to"); };
  if (!stop.cancellation().Register(end, &token)) return;  // there was one already
  std::fprintf(stderr, "%s serves at %s\n", server.task().c_str(), server.address().c_str());
  server.Join();
  stop.cancellation().Deregister(token);
  std::fprintf(stderr, "%s ends: %s\n", server.task().c_str(), server.shutdown_reason().c_str());
}

// The workers that have only served the chief have nothing left to do.
void ShutdownServingWorkers(const Flags& flags) {
  for (const auto& [job, tasks] : flags.task.cluster.jobs()) {
    if (job == "ps") continue;
    for (const auto& [index, address] : tasks) {
      if (job == flags.task.job && index == flags.task.task) continue;
      const Status status = ShutdownTask(address, "training has ended", kShutdownMs);
      if (!status.ok()) Report(status, 0);
    }
  }
}

Status RunTask(const Flags& flags, Server& server) {
  RETURN_IF_ERROR(server.Start());
  const bool chief = flags.task.is_chief();
  if (flags.task.job == "ps" || (flags.sync && !chief)) {
    Serve(server);
    return OkStatus();
  }
  RETURN_IF_ERROR(TrainFashionMnist(flags, server.target()));
  if (flags.sync) ShutdownServingWorkers(flags);
  return OkStatus();
}

int Main(int argc, char** argv) {
  const StatusOr<std::optional<Flags>> parsed = ParseFlags(argc, argv);
  if (!parsed.ok()) return Report(parsed.status(), kMistake);
  if (!parsed->has_value()) return 0;
  const Flags& flags = **parsed;
  Status status;
  if (flags.distributed()) {
    const auto server = Server::Create({.task = flags.task});
    if (!server.ok()) return Report(server.status(), kMistake);
    status = RunTask(flags, **server);
  } else {
    status = TrainFashionMnist(flags, "");
  }
  return Report(status, CodeOf(status));
}

}  // namespace
}  // namespace penstock::examples

int main(int argc, char** argv) { return penstock::examples::Main(argc, argv); }
