// SPDX-License-Identifier: Apache-2.0
//
// A client whose steps do not end, in the way that --kind says: for stories about finding out why a
// cluster is stuck. It says "begun" before the step that hangs, and ends when it is killed.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <thread>

#include "client/control_flow.h"
#include "client/program.h"
#include "client/session.h"
#include "core/op/gradient.h"

namespace penstock {
namespace {

using client::Session;

const std::vector<DType> kFloat = {DType::kFloat};

// On the ps; what is taken and put is on the worker.
struct Queue {
  Queue(client::Program& program, const std::string& name, int64_t capacity) : program(program) {
    const auto ps = program.DeviceScope(kPs);
    handle = CallIn(program, "FIFOQueueV2", {},
                    {{"component_types", kFloat}, {"shared_name", name}, {"capacity", capacity}});
  }
  Output Take() {
    const auto ps = program.DeviceScope(kPs);
    return Call("QueueDequeueV2", {handle}, {{"component_types", kFloat}});
  }
  Output Put(Output x) {
    const auto ps = program.DeviceScope(kPs);
    return Call("QueueEnqueueV2", {handle, Outputs{x}});
  }

  static constexpr char kPs[] = "/job:ps/task:0/cpu:0";
  client::Program& program;
  Output handle;
};

Status Hang(const std::string& kind, const std::string& target) {
  client::Program program;
  const auto worker = program.DeviceScope("/job:worker/task:0/cpu:0");
  const Output x = Constant(program, Tensor::Scalar(2.0f));
  ASSIGN_OR_RETURN(const auto session, Session::New(program, target));
  const auto begin = [&](Output step) {
    std::printf("begun\n");
    std::fflush(stdout);
    return session->Execute(step);
  };
  if (kind == "dequeue") return begin(Queue(program, "input", 10).Take() * 2.0);
  if (kind == "enqueue") {
    const Output put = Queue(program, "full", 1).Put(x);
    RETURN_IF_ERROR(session->Execute(put));
    return begin(put);
  }
  if (kind == "cycle") {
    Queue left(program, "left", 1), right(program, "right", 1);
    const Outputs steps = {left.Put(right.Take() * 2.0), right.Put(left.Take() * 2.0)};
    std::thread other([&] { (void)session->Execute(steps[1]); });
    const Status status = begin(steps[0]);
    other.join();
    return status;
  }
  if (kind == "loop") {
    const auto last = client::While(
        program, {x},
        [](const Outputs& v) {
          return Call("Greater", {v[0], ConstantLike(v[0], 1)});
        },
        [](const Outputs& v) { return Outputs{v[0] * 1.0}; });
    return begin(last[0]);
  }
  if (kind == "steps") {  // one after the other, each in all tasks: for tasks that are stopped
    Output sum = x;
    for (const char* device : {"/job:ps/task:0/cpu:0", "/job:worker/task:1/cpu:0"}) {
      const auto scope = program.DeviceScope(device);
      sum = Call("AddV2",
                 {sum, Call("RandomUniform", {Constant(program, Tensor::Vector<int32_t>({}))},
                            {{"dtype", DType::kFloat}})});
    }
    Status status = begin(sum);
    while (status.ok()) status = session->Execute(sum);
    return status;
  }
  return InvalidArgument("--kind: no '", kind, "'");
}

int Main(int argc, char** argv) {
  CLI::App app;
  std::string kind, target;
  app.add_option("--kind", kind)->required();
  app.add_option("--target", target)->required();
  CLI11_PARSE(app, argc, argv);
  const Status status = Hang(kind, target);
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Main(argc, argv); }
