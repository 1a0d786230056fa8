// SPDX-License-Identifier: Apache-2.0
//
// A training whose only variable counts how often it has seen each record: for stories of trainings
// that are killed and resumed. Records are the numbers 0, ..., RECORDS - 1, one per line of some
// files, which are read in another order in each epoch and drawn from a shuffling queue.
//
//   count_records CHECKPOINT_DIR EPOCHS RECORDS STEP_MILLIS FILE...
//
// Says "step N took SUM" after each step and at the end "seen" and the counts.
#include <cstdio>
#include <cstdlib>

#include "client/input.h"
#include "client/run_queue_runners.h"
#include "client/training.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

class SayAndSleep final : public TrainingHook {
 public:
  explicit SayAndSleep(int64_t millis) : millis_(millis) {}
  Status AfterStep(const StepResult& result, bool*) override {
    std::printf("step %lld took %.0f\n", static_cast<long long>(result.global_step),
                result.measures.at("sum"));
    std::fflush(stdout);
    Env::Real().SleepForNanos(millis_ * 1'000'000);
    return OkStatus();
  }

 private:
  const int64_t millis_;
};

struct Arguments {
  std::string checkpoint_dir;
  int64_t epochs, records, step_millis;
  std::vector<std::string> files;
};

Status Count(const Arguments& arguments) {
  Program program;
  QueueRunners runners(program);
  const Output files =
      StringInputProducer(runners, arguments.files, {.num_epochs = arguments.epochs, .seed = 5});
  const Output line = ReadRecord(CallIn(program, "TextLineReaderV2", {}), files).value;
  const Output number = Call("StringToNumber", {line}, {{"out_type", DType::kInt32}});
  const Output batch = ShuffleBatch(runners, {number}, 8,
                                    {.capacity = 40,
                                     .min_after_dequeue = 20,
                                     .seed = 9,
                                     .allow_smaller_final_batch = true,
                                     .repeatable = true})[0];
  const Variable seen(program, "seen", {arguments.records}, Zeros(), {.dtype = DType::kInt32});
  const Variable step = program.GlobalStep();
  const Output one = Constant(program, Tensor::Scalar<int64_t>(1));
  const Output counted = Call("ResourceScatterAdd", {seen.handle(), batch, OnesLike(batch)});
  const Output train = program.Group({counted, step.AssignAdd(one)}, "train");
  const Output sum = Sum(Cast(batch, DType::kFloat), Constant(program, Tensor::Scalar<int32_t>(0)));
  RETURN_IF_ERROR(program.status());

  TrainingLoop loop(
      program, {.train = train, .measures = {{"sum", sum}}},
      {.checkpoint_dir = arguments.checkpoint_dir, .save_every_steps = 4, .save_every_seconds = 0});
  RunQueueRunners queues(runners, batch);
  SayAndSleep say(arguments.step_millis);
  loop.AddHook(&queues);
  loop.AddHook(&say);
  RETURN_IF_ERROR(loop.Run());
  ASSIGN_OR_RETURN(const Tensor counts, loop.session().Fetch(seen));
  std::printf("seen");
  for (const int32_t count : counts.flat<int32_t>()) std::printf(" %d", count);
  std::printf("\n");
  return OkStatus();
}

}  // namespace
}  // namespace penstock::client

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "count_records CHECKPOINT_DIR EPOCHS RECORDS STEP_MILLIS FILE...\n");
    return 2;
  }
  const penstock::Status status =
      penstock::client::Count({.checkpoint_dir = argv[1],
                               .epochs = std::atoll(argv[2]),
                               .records = std::atoll(argv[3]),
                               .step_millis = std::atoll(argv[4]),
                               .files = std::vector<std::string>(argv + 5, argv + argc)});
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
