// SPDX-License-Identifier: Apache-2.0
//
// Trains a classifier of the Fashion-MNIST pictures on a cluster whose tasks all run this program:
// a ps serves, a worker serves and trains. README.md shows how to start one.
//
// Exit codes: 0 done; 1 a permanent error; 2 a mistake in the flags; 129 a task was lost and did
// not come back in time; 143 a signal ended the training early. After 129 and 143 try again.
#include <optional>
#include <string>

#include "client/examples/fashion_mnist_flags.h"
#include "client/examples/fashion_mnist_training.h"
#include "client/examples/task.h"

namespace penstock::examples {
namespace {

constexpr char kProgram[] = "fashion_mnist";

int Main(int argc, char** argv) {
  const StatusOr<std::optional<Flags>> parsed = ParseFlags(argc, argv);
  if (!parsed.ok()) return Report(kProgram, parsed.status(), kMistake);
  if (!parsed->has_value()) return kDone;
  const Flags& flags = **parsed;
  return RunTask(
      {.program = kProgram, .task = flags.task, .chief_drives = flags.sync, .server = flags.server},
      [&](const std::string& target) { return TrainFashionMnist(flags, target); });
}

}  // namespace
}  // namespace penstock::examples

int main(int argc, char** argv) { return penstock::examples::Main(argc, argv); }
