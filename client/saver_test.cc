// SPDX-License-Identifier: Apache-2.0
//
// Tests that saved values are restored, that old checkpoints are removed, and that damaged ones are
// skipped.
#include "client/saver.h"

#include <fstream>

#include "client/optimizers.h"
#include "core/base/forwarding_env.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoint_state.h"
#include "core/op/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// Makes a new directory, named after the running test, and returns its path.
std::string NewDirectory() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string path = StrCat(testing::TempDir(), "/", test->test_suite_name(), "_",
                                  test->name(), "_", Env::Real().RandomU64());
  CHECK_OK(Env::Real().CreateDirectories(path));
  return path;
}

// A program with a resource variable, a ref variable, a local variable and the global step; its
// saver and its session.
struct Model {
  explicit Model(const SaverOptions& options = {})
      : w(program, "layer/w", {2, 3}, Filled(1)),
        words(program, "words", Constant(program, Tensor::Vector<std::string>({"a", "bc"})),
              {.trainable = false, .ref = true}),
        scratch(program, "scratch", {1}, Zeros(), {.local = true}),
        step(program.GlobalStep()),
        next(program.Group({w.AssignAdd(OnesLike(w)), step.AssignAdd(OnesLike(step))}, "next")),
        init(program.Initialize(program.variables())),
        saver(program, {}, options),
        session(*Session::New(program)) {
    CHECK_OK(session->Execute(init));
  }
  void RunTo(int64_t last) {
    while (session->Fetch(step)->scalar<int64_t>() < last) CHECK_OK(session->Execute(next));
  }
  float first() { return session->Fetch(w)->flat<float>()[0]; }

  Program program;
  Variable w, words, scratch, step;
  Output next, init;
  Saver saver;
  std::unique_ptr<Session> session;
};

void Damage(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  ASSERT_TRUE(file.good()) << path;
  file.seekg(5);
  const char byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(5);
  file.put(byte);
}

TEST(SaverTest, WhatIsSavedComesBack) {
  const std::string directory = NewDirectory();
  std::string saved;
  {
    Model model;
    model.RunTo(4);
    const auto checkpoint = model.saver.Save(*model.session, directory + "/model.ckpt", 4);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ(*checkpoint, directory + "/model.ckpt-4");
    saved = *checkpoint;
  }
  Model other;
  EXPECT_EQ(other.first(), 1);
  const Status restored = other.saver.Restore(*other.session, saved);
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_EQ(other.first(), 5);
  EXPECT_EQ(other.session->Fetch(other.words)->flat<std::string>()[1], "bc");
  EXPECT_EQ(other.session->Fetch(other.step)->scalar<int64_t>(), 4);
}

TEST(SaverTest, ACheckpointHoldsTheSharedVariablesByName) {
  const std::string directory = NewDirectory();
  Model model;
  const auto checkpoint = model.saver.Save(*model.session, directory + "/model.ckpt", 0);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto reader = BundleReader::Open(Env::Real(), *checkpoint);
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<std::string> names;
  for (const auto& [name, entry] : (*reader)->tensors()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("global_step", "layer/w", "words"));
  // No other files are left, such as partial or temporary ones.
  EXPECT_THAT(*Env::Real().ListDirectory(directory),
              ElementsAre("checkpoint", "model.ckpt-0.data-00000-of-00001", "model.ckpt-0.index"));
}

TEST(SaverTest, KeepsTheNewestCheckpoints) {
  const std::string directory = NewDirectory();
  Model model({.keep = 2});
  for (const int64_t step : {10, 20, 30, 40}) {
    ASSERT_TRUE(model.saver.Save(*model.session, directory + "/model.ckpt", step).ok());
  }
  const auto state = ReadCheckpointState(Env::Real(), directory);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->latest, "model.ckpt-40");
  EXPECT_THAT(state->all, ElementsAre("model.ckpt-30", "model.ckpt-40"));
  // two files per checkpoint, and the file "checkpoint"
  EXPECT_EQ(Env::Real().ListDirectory(directory)->size(), 5u);
  // Saving a step again does not add a checkpoint.
  ASSERT_TRUE(model.saver.Save(*model.session, directory + "/model.ckpt", 40).ok());
  EXPECT_THAT(ReadCheckpointState(Env::Real(), directory)->all,
              ElementsAre("model.ckpt-30", "model.ckpt-40"));
}

// An Env whose clock the test sets.
class SetClock : public ForwardingEnv {
 public:
  SetClock() : ForwardingEnv(Env::Real()) {}
  int64_t WallMicros() override { return hours * 3'600'000'000; }
  int64_t hours = 1000;
};

TEST(SaverTest, KeepsOneOfEverySoManyHoursForGood) {
  const std::string directory = NewDirectory();
  SetClock clock;
  Model model({.keep = 2, .keep_every_hours = 10, .env = &clock});
  for (int64_t step = 0; step < 30; ++step) {  // one save per hour
    ASSERT_TRUE(model.saver.Save(*model.session, directory + "/model.ckpt", step).ok());
    ++clock.hours;
  }
  EXPECT_THAT(*ListCheckpoints(Env::Real(), directory),
              UnorderedElementsAre(directory + "/model.ckpt-10", directory + "/model.ckpt-20",
                                   directory + "/model.ckpt-28", directory + "/model.ckpt-29"));
  EXPECT_THAT(ReadCheckpointState(Env::Real(), directory)->all,
              ElementsAre("model.ckpt-28", "model.ckpt-29"));
}

TEST(SaverTest, ACutIsSavedAsItWas) {
  const std::string directory = NewDirectory();
  Model model({.background = true});
  model.RunTo(3);
  EXPECT_FALSE(model.saver.copies_ahead()) << "its variables are small";
  ASSERT_TRUE(model.saver.CopyAhead(*model.session, "a").ok());
  ASSERT_TRUE(model.saver.TakeSnapshot(*model.session, "a").ok());
  model.RunTo(9);
  const auto saved = model.saver.SaveSnapshot(*model.session, "a", directory + "/model.ckpt", 3);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(model.first(), 10);
  ASSERT_TRUE(model.saver.Restore(*model.session, *saved).ok());
  EXPECT_EQ(model.first(), 4);
  EXPECT_EQ(model.session->Fetch(model.step)->scalar<int64_t>(), 3);
  EXPECT_EQ(
      model.saver.SaveSnapshot(*model.session, "a", directory + "/model.ckpt", 3).status().code(),
      StatusCode::kFailedPrecondition)
      << "a snapshot is saved once";
}

TEST(SaverTest, WhatACrashLeftIsClearedAway) {
  const std::string directory = NewDirectory();
  CHECK_OK(Env::Real().CreateDirectories(directory + "/model.ckpt-5_temp_abc"));
  std::ofstream(directory + "/model.ckpt-5_temp_abc/part-00000-of-00001.index") << "half";
  Model model;
  ASSERT_TRUE(model.saver.Save(*model.session, directory + "/model.ckpt", 6).ok());
  EXPECT_FALSE(Env::Real().FileExists(directory + "/model.ckpt-5_temp_abc"));
}

TEST(SaverTest, AFailedSaveLeavesTheCheckpointsAsTheyWere) {
  const std::string directory = NewDirectory();
  Model model({.keep = 1});
  ASSERT_TRUE(model.saver.Save(*model.session, directory + "/model.ckpt", 1).ok());
  CHECK_OK(model.session->Close());
  const auto failed = model.saver.Save(*model.session, directory + "/model.ckpt", 2);
  EXPECT_FALSE(failed.ok());
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr("saving"));
  EXPECT_EQ(ReadCheckpointState(Env::Real(), directory)->latest, "model.ckpt-1");
  EXPECT_TRUE(VerifyCheckpoint(Env::Real(), directory + "/model.ckpt-1").ok());
}

TEST(SaverTest, ADamagedNewestCheckpointIsPassedOver) {
  const std::string directory = NewDirectory();
  {
    Model model;
    for (const int64_t step : {1, 2, 3}) {
      model.RunTo(step);
      ASSERT_TRUE(model.saver.Save(*model.session, directory + "/model.ckpt", step).ok());
    }
  }
  Damage(directory + "/model.ckpt-3.data-00000-of-00001");
  CHECK_OK(Env::Real().RemoveFile(directory + "/model.ckpt-2.data-00000-of-00001"));
  Model model;
  const auto found = model.saver.RestoreNewestGood(*model.session, directory);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->prefix, directory + "/model.ckpt-1");
  EXPECT_EQ(model.first(), 2);
  ASSERT_EQ(found->skipped.size(), 2u);
  EXPECT_EQ(found->skipped[0].prefix, directory + "/model.ckpt-3");
  EXPECT_EQ(found->skipped[0].why.code(), StatusCode::kDataLoss) << found->skipped[0].why;
  EXPECT_EQ(found->skipped[1].prefix, directory + "/model.ckpt-2");
}

TEST(SaverTest, NoCheckpointIsNoErrorButOnlyDamagedOnesAre) {
  const std::string directory = NewDirectory();
  Model model;
  for (const std::string& place : {directory, directory + "/not/there"}) {
    const auto found = model.saver.RestoreNewestGood(*model.session, place);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->prefix, "");
  }
  ASSERT_TRUE(model.saver.Save(*model.session, directory + "/model.ckpt", 1).ok());
  Damage(directory + "/model.ckpt-1.data-00000-of-00001");
  const auto found = model.saver.RestoreNewestGood(*model.session, directory);
  EXPECT_EQ(found.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("model.ckpt-1"));
}

TEST(SaverTest, ACheckpointOfAnotherModelIsRefusedByName) {
  const std::string directory = NewDirectory();
  Program program;
  // `w` has another shape than in Model, and Model's other variables are missing
  Variable w(program, "layer/w", {2, 2}, Filled(1));
  Saver saver(program);
  auto session = *Session::New(program);
  ASSERT_TRUE(session->Execute(w.initializer()).ok());
  ASSERT_TRUE(saver.Save(*session, directory + "/model.ckpt", 1).ok());
  Model model;
  const Status missing = model.saver.Restore(*model.session, directory + "/model.ckpt-1");
  EXPECT_EQ(missing.code(), StatusCode::kNotFound) << missing;
  Saver only_w(model.program, {model.w});
  const Status shape = only_w.Restore(*model.session, directory + "/model.ckpt-1");
  EXPECT_EQ(shape.code(), StatusCode::kInvalidArgument) << shape;
  EXPECT_EQ(model.first(), 1) << "unchanged";
}

TEST(SaverTest, AProgramWithoutVariablesIsAMistake) {
  Program program;
  Saver saver(program);
  EXPECT_EQ(program.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::client
