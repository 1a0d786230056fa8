// SPDX-License-Identifier: Apache-2.0
#include "client/summary/summary_hook.h"

#include "client/optimizers.h"
#include "client/summary/summaries.h"
#include "client/summary/testing/event_files.h"
#include "client/training.h"
#include "core/base/forwarding_env.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"

namespace penstock::client {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A clock that advances half a second at each reading.
class HalfSeconds final : public ForwardingEnv {
 public:
  HalfSeconds() : ForwardingEnv(Env::Real()) {}
  int64_t NowNanos() override { return now_ns += 500'000'000; }
  int64_t now_ns = 0;
};

// A training in which w is 1 - 0.5^n after step n.
struct Model {
  Model() {
    const Variable w(program, "w", {}, Zeros());
    loss = Square(w - 1);
    train = GradientDescent(0.25).Minimize(program, loss);
    weight = w.Read();
  }

  Status Train(std::vector<TrainingHook*> hooks, TrainingOptions options) {
    options.stop_on_signals = false;
    options.say = [](const std::string&) {};
    TrainingLoop loop(program, {.train = train, .measures = {{"loss", loss}}}, options);
    for (TrainingHook* hook : hooks) loop.AddHook(hook);
    return loop.Run();
  }

  Program program;
  Output loss, train, weight;
};

int64_t StartStep(const tensorflow::Event& event) {
  return event.session_log().status() == tensorflow::SessionLog::START ? event.step() : -1;
}

TEST(SummaryHookTest, MeasuresSpeedGraphAndSummaries) {
  const std::string folder = NewTestFolder();
  Model model;
  Summaries summaries(model.program);
  summaries.AddScalar("weight", model.weight);
  summaries.AddHistogram("weights", model.weight);
  const Output images = Constant(model.program, Tensor::Of<float>({1, 1, 2, 1}, {0, 1}));
  summaries.AddImages("pictures", images, 1);
  HalfSeconds clock;
  {
    const auto writer = *SummaryWriter::Create(folder);
    SummaryHook hook(*writer, model.program,
                     {.every_steps = 3, .summary = summaries.Merged(), .env = &clock});
    const Status trained = model.Train({&hook}, {.max_steps = 8});
    ASSERT_TRUE(trained.ok()) << trained;
  }
  const auto events = ReadEvents(folder);
  EXPECT_THAT(StepsWith(events, "weight"), ElementsAre(1, 4, 7));
  EXPECT_THAT(StepsWith(events, "weights"), ElementsAre(1, 4, 7));
  EXPECT_THAT(StepsWith(events, "pictures/image"), ElementsAre(1, 4, 7));
  EXPECT_THAT(StepsWith(events, "loss"), ElementsAre(1, 4, 7));
  EXPECT_THAT(StepsWith(events, SummaryHook::kSpeedTag), ElementsAre(4, 7));
  int graphs = 0;
  for (const tensorflow::Event& event : events) {
    graphs += event.graph_def().empty() ? 0 : 1;
    for (const auto& value : event.summary().value()) {
      // The clock is read once for each written step, so three steps seem to take half a second.
      if (value.tag() == SummaryHook::kSpeedTag) {
        EXPECT_EQ(value.simple_value(), 6);
      }
      if (value.tag() == "weights") {
        EXPECT_EQ(value.histo().num(), 1);
      }
    }
  }
  EXPECT_EQ(graphs, 1);
  EXPECT_EQ(StartStep(events[2]), 1);
  EXPECT_EQ(events.back().session_log().status(), tensorflow::SessionLog::STOP);
}

TEST(SummaryHookTest, WithoutSummariesTheMeasuresAlone) {
  const std::string folder = NewTestFolder();
  Model model;
  {
    const auto writer = *SummaryWriter::Create(folder);
    SummaryHook hook(*writer, model.program, {.every_steps = 2});
    CHECK_OK(model.Train({&hook}, {.max_steps = 5}));
  }
  EXPECT_THAT(StepsWith(ReadEvents(folder), "loss"), ElementsAre(1, 3, 5));
}

TEST(SummaryHookTest, StepsThatAreUnderWayTogether) {
  const std::string folder = NewTestFolder();
  Model model;
  Summaries summaries(model.program);
  summaries.AddScalar("weight", model.weight);
  {
    const auto writer = *SummaryWriter::Create(folder);
    SummaryHook hook(*writer, model.program, {.every_steps = 5, .summary = summaries.Merged()});
    CHECK_OK(model.Train({&hook}, {.max_steps = 20, .concurrent_steps = 3}));
  }
  const auto steps = StepsWith(ReadEvents(folder), "weight");
  EXPECT_GE(steps.size(), 3u);
  EXPECT_LE(steps.size(), 5u);
}

// Fails one step, as if its task was lost.
class LoseTask : public TrainingHook {
 public:
  Status AfterStep(const StepResult& result, bool* stop) override {
    if (result.global_step != 6 || lost_) return OkStatus();
    lost_ = true;
    return Aborted("a task was lost");
  }

 private:
  bool lost_ = false;
};

TEST(SummaryHookTest, AfterALossTensorBoardDropsTheStepsThatAreTakenAgain) {
  const std::string folder = NewTestFolder();
  Model model;
  LoseTask lose;
  {
    const auto writer = *SummaryWriter::Create(folder);
    SummaryHook hook(*writer, model.program, {.every_steps = 1});
    // A session in this process loses its variables when it ends.
    CHECK_OK(model.Train({&hook, &lose}, {.checkpoint_dir = NewTestFolder(),
                                          .save_every_steps = 4,
                                          .save_in_background = false,
                                          .max_steps = 8}));
  }
  const auto events = ReadEvents(folder);
  EXPECT_THAT(StepsWith(events, "loss"), ElementsAre(1, 2, 3, 4, 5, 6, 5, 6, 7, 8));
  std::vector<int64_t> starts, checkpoints;
  for (const tensorflow::Event& event : events) {
    if (StartStep(event) >= 0) starts.push_back(event.step());
    if (event.session_log().status() == tensorflow::SessionLog::CHECKPOINT) {
      EXPECT_THAT(event.session_log().checkpoint_path(), HasSubstr("model.ckpt-"));
      checkpoints.push_back(event.step());
    }
  }
  EXPECT_THAT(starts, ElementsAre(1, 5));
  EXPECT_THAT(checkpoints, Contains(4));
}

TEST(SummariesTest, Mistakes) {
  Program program;
  Summaries summaries(program);
  EXPECT_FALSE(summaries.Merged().valid());
  const Output one = Constant(program, Tensor::Scalar<float>(1));
  summaries.AddScalar("a", one);
  CHECK_OK(program.status());
  summaries.AddHistogram("a", one);
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("two summaries have the tag 'a'"));
}

}  // namespace
}  // namespace penstock::client
