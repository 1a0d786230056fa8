// SPDX-License-Identifier: Apache-2.0
//
// Tests that training goes on during a background save, and that the checkpoint shows all variables
// at the same step.
#include "client/background_save.h"

#include <fstream>
#include <optional>
#include <utility>

#include "client/training.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoint_state.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// 2 MiB: large enough to be copied before the snapshot
constexpr int64_t kSavedRows = 2048, kLength = 256;

Output Number(Program& program, int64_t value) {
  return Constant(program, Tensor::Scalar<int64_t>(value));
}

// A step adds 1 to a row of a table, to all elements of a matrix, to a number and to the global
// step.
struct SavedModel {
  SavedModel()
      : table(program, "table", {kSavedRows, kLength}, Zeros()),
        matrix(program, "matrix", {kSavedRows, kLength}, Zeros()),
        number(program, "number", {}, Zeros()) {
    const Output row = program.GlobalStep() -
                       Call("FloorDiv", {program.GlobalStep(), Number(program, kSavedRows)}) *
                           Number(program, kSavedRows);
    const Output ones =
        Constant(program, Tensor::Of<float>({1, kLength}, std::vector<float>(kLength, 1)));
    const Output index = ExpandDims(row, Constant(program, Tensor::Scalar<int32_t>(0)));
    const Outputs updates = {Call("ResourceScatterAdd", {table.handle(), index, ones}),
                             matrix.AssignAdd(OnesLike(matrix)),
                             number.AssignAdd(OnesLike(number))};
    const auto after = program.ControlDependencies(updates);
    train = program.Group({program.GlobalStep().AssignAdd(Number(program, 1))}, "train");
  }
  Program program;
  Variable table, matrix, number;
  Output train;
};

std::string BackgroundDirectory() {
  return StrCat(testing::TempDir(), "/background_", Env::Real().RandomU64());
}

// Checks that all variables of the checkpoint were updated as often as its global step says.
void ExpectOneMoment(const std::string& checkpoint) {
  const auto reader = BundleReader::Open(Env::Real(), checkpoint);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto read = [&](const char* name) { return *(*reader)->Read(name); };
  const int64_t step = read("global_step").scalar<int64_t>();
  EXPECT_EQ(read("number").scalar<float>(), step) << checkpoint;
  for (const float element : read("matrix").flat<float>()) ASSERT_EQ(element, step) << checkpoint;
  double sum = 0;
  for (const float element : read("table").flat<float>()) sum += element;
  EXPECT_EQ(sum, static_cast<double>(step * kLength)) << checkpoint;
}

struct SavingTrainer : TrainingHook {
  SavingTrainer() {
    options.checkpoint_dir = BackgroundDirectory();
    options.save_every_seconds = 0;
    options.stop_on_signals = false;
    options.say = [this](const std::string& line) { said.push_back(line); };
  }
  Status Run() {
    loop.emplace(model.program, TrainingStep{.train = model.train}, options);
    loop->AddHook(this);
    return loop->Run();
  }
  Status AfterStep(const StepResult& result, bool* stop) override {
    step = result.global_step;
    if (after_step) after_step();
    return OkStatus();
  }
  void AfterSave(const std::string& checkpoint, int64_t at) override {
    saved.push_back({checkpoint, at, step});
    ExpectOneMoment(checkpoint);
  }
  std::string latest() const {
    return ReadCheckpointState(Env::Real(), options.checkpoint_dir)->latest;
  }

  struct Saved {
    std::string checkpoint;
    int64_t at, told_at;
  };
  SavedModel model;
  TrainingOptions options;
  std::optional<TrainingLoop> loop;
  std::vector<std::string> said;
  std::vector<Saved> saved;
  std::function<void()> after_step;
  int64_t step = 0;
};

TEST(BackgroundSaveTest, CheckpointsAreOfOneMomentWhileStepsGoOn) {
  SavingTrainer trainer;
  trainer.options.save_every_steps = 20;
  trainer.options.keep_checkpoints = 0;
  trainer.options.max_steps = 600;
  const Status status = trainer.Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_GT(trainer.saved.size(), 2u);
  EXPECT_EQ(trainer.saved.back().at, 600);
  EXPECT_EQ(trainer.latest(), "model.ckpt-600");
  EXPECT_THAT(trainer.said, IsEmpty());
  int64_t last = -1;
  for (const auto& saved : trainer.saved) {
    EXPECT_GT(saved.at, last) << "one after the other";
    last = saved.at;
  }
}

TEST(BackgroundSaveTest, StepsDoNotWaitForASlowDisk) {
  SavingTrainer trainer;
  trainer.options.save_every_steps = 5;
  trainer.options.save_bytes_per_second = 8 << 20;  // so a save takes half a second
  trainer.options.max_steps = 20'000;
  trainer.after_step = [&] {
    // the first one is the save at step 0
    if (trainer.saved.size() >= 2) trainer.loop->RequestStop();
  };
  const Status status = trainer.Run();
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_GE(trainer.saved.size(), 2u);
  const auto& slow = trainer.saved[1];
  EXPECT_GT(slow.told_at, slow.at + 10) << "steps were taken while it was written";
  EXPECT_EQ(trainer.latest(), StrCat("model.ckpt-", trainer.loop->global_step()));
}

TEST(BackgroundSaveTest, ASaveThatFailsIsToldAndTriedAgain) {
  SavingTrainer trainer;
  const std::string directory = trainer.options.checkpoint_dir, away = directory + "_away";
  trainer.options.save_every_steps = 10;
  trainer.options.max_steps = 20'000;
  bool lost = false;
  trainer.after_step = [&] {
    if (!lost && trainer.step == 5) {
      lost = true;
      CHECK_OK(Env::Real().Rename(directory, away));
      std::ofstream(directory) << "a file where the directory was";
    } else if (lost && !trainer.said.empty()) {
      lost = false;
      CHECK_OK(Env::Real().RemoveFile(directory));
      CHECK_OK(Env::Real().Rename(away, directory));
    } else if (!lost && trainer.step > 5 && trainer.saved.size() >= 2) {
      trainer.loop->RequestStop();
    }
  };
  const Status status = trainer.Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(trainer.said, Contains(HasSubstr("NOT SAVED: saving " + directory)));
  EXPECT_THAT(trainer.said[0], HasSubstr("the last checkpoint is of step 0"));
  EXPECT_GE(trainer.saved.size(), 2u);
  EXPECT_EQ(trainer.latest(), StrCat("model.ckpt-", trainer.loop->global_step()));
}

TEST(BackgroundSaveTest, NothingThatIsNotFiniteIsSaved) {
  SavingTrainer trainer;
  trainer.options.save_every_steps = 10;
  trainer.options.max_steps = 20'000;
  const Output spoil = trainer.model.number.Assign(
      Constant(trainer.model.program, Tensor::Scalar(std::numeric_limits<float>::quiet_NaN())));
  trainer.after_step = [&] {
    if (trainer.step == 55) CHECK_OK(trainer.loop->session().Execute(spoil));
  };
  const Status status = trainer.Run();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("variable 'number' is not finite and is not saved"));
  ASSERT_FALSE(trainer.saved.empty());
  EXPECT_LE(trainer.saved.back().at, 55);
  EXPECT_EQ(trainer.latest(), StrCat("model.ckpt-", trainer.saved.back().at));
}

TEST(BackgroundSaveTest, ASaveIsGivenUpWithItsSession) {
  SavedModel model;
  Saver saver(model.program, {}, {.background = true, .bytes_per_second = 1 << 10});
  const auto session = *Session::New(model.program);
  CHECK_OK(session->Execute(model.program.Initialize(model.program.variables())));
  const std::string directory = BackgroundDirectory();
  const int64_t begin = Env::Real().NowNanos();
  {
    const auto take_snapshot = [&](const std::string& name,
                                   const RunOptions& run) -> StatusOr<int64_t> {
      RETURN_IF_ERROR(saver.TakeSnapshot(*session, name, run));
      return 7;
    };
    BackgroundSave save(saver, *session, directory + "/model.ckpt", take_snapshot, Env::Real(),
                        Scheduler::Real());
    while (!save.has_snapshot()) {
      ASSERT_FALSE(save.Advance());
      Env::Real().SleepForNanos(1'000'000);
    }
    EXPECT_EQ(save.step(), 7);
  }
  EXPECT_LT((Env::Real().NowNanos() - begin) * 1e-9, 30) << "4 MiB would take an hour";
  EXPECT_FALSE(ReadCheckpointState(Env::Real(), directory).ok());
}

}  // namespace
}  // namespace penstock::client
