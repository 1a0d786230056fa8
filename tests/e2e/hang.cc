// SPDX-License-Identifier: Apache-2.0
//
// A client whose steps hang in the way that --kind selects, for tests of `penstock why`. It prints
// "begun" before the step that hangs, and runs until it is killed.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "client/control_flow.h"
#include "client/initializers.h"
#include "client/mutex.h"
#include "client/program.h"
#include "client/session.h"
#include "client/training.h"
#include "core/op/gradient.h"

namespace penstock {
namespace {

using client::Session;

const std::vector<DType> kFloat = {DType::kFloat};

// A queue on the ps, and ops for it. The ops' elements are made on the worker.
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

// Returns an op that takes three elements of a barrier. The barrier has one complete element, and
// another one without its second component.
StatusOr<Output> BarrierOneShort(client::Program& program, Session& session) {
  const auto ps = program.DeviceScope(Queue::kPs);
  const std::vector<DType> types(2, DType::kFloat);
  const Output barrier = CallIn(program, "Barrier", {},
                                {{"component_types", types},
                                 {"shapes", std::vector<PartialShape>(2, PartialShape::Scalar())},
                                 {"shared_name", "pairs"}});
  const std::vector<std::string> keys[] = {{"a", "b"}, {"a"}};
  const std::vector<float> values[] = {{1, 2}, {1}};
  for (int component = 0; component < 2; ++component) {
    RETURN_IF_ERROR(session.Execute(
        Call("BarrierInsertMany",
             {barrier, Constant(program, Tensor::Vector<std::string>(keys[component])),
              Constant(program, Tensor::Vector<float>(values[component]))},
             {{"component_index", component}})));
  }
  return CallN("BarrierTakeMany", {barrier, Constant(program, Tensor::Scalar<int32_t>(3))},
               {{"component_types", types}})[0];
}

// Returns an op that averages two gradients, of which only one has arrived.
StatusOr<Output> AccumulatorOneShort(client::Program& program, Session& session) {
  const auto ps = program.DeviceScope(Queue::kPs);
  const Output sum = CallIn(
      program, "ConditionalAccumulator", {},
      {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}, {"shared_name", "gradients"}});
  RETURN_IF_ERROR(session.Execute(
      Call("AccumulatorApplyGradient", {sum, Constant(program, Tensor::Scalar<int64_t>(0)),
                                        Constant(program, Tensor::Scalar(1.0f))})));
  return Call("AccumulatorTakeGradient", {sum, Constant(program, Tensor::Scalar<int32_t>(2))},
              {{"dtype", DType::kFloat}});
}

void Begun() {
  std::printf("begun\n");
  std::fflush(stdout);
}

// Trains as the chief, which saves after each step, or as a worker that waits for the chief. The
// variable of 1 MB is on the ps.
Status Train(client::TrainingOptions options) {
  client::Program program;
  const auto ps = program.DeviceScope(Queue::kPs);
  client::Variable(program, "weights", Shape({512, 512}), client::Zeros());
  const Output one = Constant(program, Tensor::Scalar<int64_t>(1));
  options.save_every_steps = 1;
  client::TrainingLoop loop(program, {.train = program.GlobalStep().AssignAdd(one)}, options);
  Begun();
  return loop.Run();
}

// Polls whether a variable has a value.
Status AwaitVariable(client::Program& program, Session& session) {
  const auto ps = program.DeviceScope(Queue::kPs);
  const client::Variable variable(program, "forgotten", Shape({2}), client::Zeros());
  const Output initialized = variable.IsInitialized();
  Begun();
  while (true) {
    ASSIGN_OR_RETURN(const Tensor answer, session.Fetch(initialized));
    if (answer.scalar<bool>()) return OkStatus();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

// Runs `step` repeatedly. Makes a new session after each failure, as training loops do.
Status Retry(client::Program& program, Output step, const std::string& target) {
  Begun();
  while (true) {
    const auto session = Session::New(program, target, {.operation_timeout_ms = 60'000});
    if (!session.ok()) continue;
    Status status;
    while (status.ok()) status = (*session)->Execute(step);
  }
}

Status Hang(const std::string& kind, const std::string& target, const std::string& folder) {
  if (kind == "save") return Train({.target = target, .checkpoint_dir = folder});
  if (kind == "chief") return Train({.target = target, .is_chief = false});
  client::Program program;
  const auto worker = program.DeviceScope("/job:worker/task:0/cpu:0");
  const Output x = Constant(program, Tensor::Scalar(2.0f));
  ASSIGN_OR_RETURN(const auto session, Session::New(program, target));
  const auto begin = [&](Output step) {
    Begun();
    return session->Execute(step);
  };
  if (kind == "variable") return AwaitVariable(program, *session);
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
  if (kind == "barrier") {
    ASSIGN_OR_RETURN(const Output taken, BarrierOneShort(program, *session));
    return begin(taken);
  }
  if (kind == "accumulator") {
    ASSIGN_OR_RETURN(const Output mean, AccumulatorOneShort(program, *session));
    return begin(mean);
  }
  // one step holds the lock and waits for a queue, another step waits for the lock
  if (kind == "lock") {
    Queue input(program, "input", 10);
    const Output mutex = client::NewMutex(program, "updates", input.handle);
    const Outputs first = client::Lock(program, {mutex}, {});
    const auto holding = program.ControlDependencies(first);
    const Output unlocked = client::Unlock(program, first, {input.Take()});
    const auto free = program.ClearControlDependencies();
    const Outputs second = client::Lock(program, {mutex}, {});
    const Output waits = client::Unlock(program, second, {});
    std::thread holder([&] { (void)session->Execute(unlocked); });
    // Gives the other step a second to take the lock.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const Status status = begin(waits);
    holder.join();
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
  // repeated steps that use all tasks, for tests that stop a task or cut the network
  if (kind == "steps" || kind == "retry") {
    Output sum = x;
    for (const char* device : {"/job:ps/task:0/cpu:0", "/job:worker/task:1/cpu:0"}) {
      const auto scope = program.DeviceScope(device);
      sum = Call("AddV2",
                 {sum, Call("RandomUniform", {Constant(program, Tensor::Vector<int32_t>({}))},
                            {{"dtype", DType::kFloat}})});
    }
    if (kind == "retry") return Retry(program, sum, target);
    Status status = begin(sum);
    while (status.ok()) status = session->Execute(sum);
    return status;
  }
  return InvalidArgument("--kind: no '", kind, "'");
}

int Main(int argc, char** argv) {
  CLI::App app;
  std::string kind, target, folder;
  app.add_option("--kind", kind)->required();
  app.add_option("--target", target)->required();
  app.add_option("--checkpoint_dir", folder);
  CLI11_PARSE(app, argc, argv);
  const Status status = Hang(kind, target, folder);
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Main(argc, argv); }
