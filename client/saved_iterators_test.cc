// SPDX-License-Identifier: Apache-2.0
//
// Tests that a Saver saves and restores the positions of iterators.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/dataset_iterator.h"
#include "client/device_setter.h"
#include "client/saver.h"
#include "core/op/gradient.h"
#include "distributed/testing/test_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using testing::HasSubstr;

std::string CheckpointPrefix() {
  return StrCat(testing::TempDir(), "/saved_iterators_", Env::Real().RandomU64(), "/model.ckpt");
}

// A program that counts the batches that it takes from a dataset, and its session.
struct Reader {
  using Pipeline = std::function<Dataset(Program& program)>;

  explicit Reader(const Pipeline& make, SaverOptions options = {}, const std::string& target = "",
                  const std::function<GraphBuilder::Scope(Program&)>& place = nullptr) {
    std::optional<GraphBuilder::Scope> placed;
    if (place != nullptr) placed.emplace(place(program));
    const Variable count(program, "count", {}, Zeros());
    iterator.emplace(make(program));
    next = iterator->GetNext()[0];
    counted = count.AssignAdd(OnesLike(count));
    init = program.Initialize(program.variables());
    options.iterators = {*iterator};
    saver.emplace(program, std::vector<Variable>(), options);
    EXPECT_TRUE(program.status().ok()) << program.status();
    session = *Session::New(program, target);
  }
  void Start() {
    CHECK_OK(session->Execute(init));
    CHECK_OK(session->Execute(iterator->initializer()));
  }
  // Takes up to `most` batches; "end" at the end.
  std::vector<std::string> Take(int most) {
    std::vector<std::string> taken;
    while (static_cast<int>(taken.size()) < most) {
      const auto batch = session->Run({}, {next}, {counted}, {.timeout_ms = 20'000});
      taken.push_back(batch.ok()                           ? (*batch)[0].ToString(100)
                      : absl::IsOutOfRange(batch.status()) ? "end"
                                                           : batch.status().ToString());
      if (!batch.ok()) break;
    }
    return taken;
  }

  Program program;
  std::optional<Iterator> iterator;
  Output next, counted, init;
  std::optional<Saver> saver;
  std::unique_ptr<Session> session;
};

// Fifteen batches, of three rounds that are shuffled differently.
Dataset ShuffledBatches(Program& program) {
  return Dataset::Range(program, 0, 20)
      .Shuffle(8, 3)
      .Repeat(3)
      .ParallelMap([](const Outputs& x) { return Outputs{x[0] + 10}; })
      .Batch(4)
      .Prefetch();
}
constexpr int kBatches = 15;

Dataset PlainBatches(Program& program) { return Dataset::Range(program, 0, 60).Batch(4); }

TEST(SavedIterators, GoOnInTheMiddleOfARound) {
  Reader whole(ShuffledBatches);
  whole.Start();
  const std::vector<std::string> all = whole.Take(100);
  ASSERT_EQ(all.size(), kBatches + 1u);
  for (const int before : {0, 1, 7, kBatches}) {
    std::string checkpoint;
    {
      Reader reader(ShuffledBatches);
      reader.Start();
      reader.Take(before);
      const auto saved = reader.saver->Save(*reader.session, CheckpointPrefix(), before);
      ASSERT_TRUE(saved.ok()) << saved.status();
      checkpoint = *saved;
      // The save does not move the iterator.
      EXPECT_EQ(reader.Take(100), std::vector(all.begin() + before, all.end())) << before;
    }
    // No initializer needs to run before the restore.
    Reader reader(ShuffledBatches);
    const Status restored = reader.saver->Restore(*reader.session, checkpoint);
    ASSERT_TRUE(restored.ok()) << restored;
    EXPECT_EQ(reader.Take(100), std::vector(all.begin() + before, all.end())) << before;
    // Another restore goes back.
    CHECK_OK(reader.saver->Restore(*reader.session, checkpoint));
    EXPECT_EQ(reader.Take(1)[0], all[before]);
  }
}

TEST(SavedIterators, AreInSnapshots) {
  Reader reader(ShuffledBatches, {.background = true});
  reader.Start();
  reader.Take(6);
  CHECK_OK(reader.saver->TakeSnapshot(*reader.session, "first"));
  const std::vector<std::string> after = reader.Take(3);
  const auto saved = reader.saver->SaveSnapshot(*reader.session, "first", CheckpointPrefix(), 6);
  ASSERT_TRUE(saved.ok()) << saved.status();
  Reader other(ShuffledBatches);
  CHECK_OK(other.saver->Restore(*other.session, *saved));
  EXPECT_EQ(other.Take(3), after);
}

TEST(SavedIterators, AreOnTheirTasks) {
  TestCluster cluster({{"ps", 1}, {"worker", 1}});
  const auto place = [](Program& program) {
    return program.DeviceFunctionScope(
        ReplicaDeviceSetter({.ps_tasks = 1, .worker_device = "/job:worker/task:0"}));
  };
  std::string checkpoint;
  std::vector<std::string> after;
  {
    Reader reader(ShuffledBatches, {}, cluster.target(), place);
    reader.Start();
    reader.Take(4);
    const auto saved = reader.saver->Save(*reader.session, CheckpointPrefix(), 4);
    ASSERT_TRUE(saved.ok()) << saved.status();
    checkpoint = *saved;
    after = reader.Take(5);
  }
  Reader reader(ShuffledBatches, {}, cluster.target(), place);
  const Status restored = reader.saver->Restore(*reader.session, checkpoint);
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_EQ(reader.Take(5), after);
}

TEST(SavedIterators, MistakesAreErrors) {
  Reader reader(ShuffledBatches);
  CHECK_OK(reader.session->Execute(reader.init));
  const std::string prefix = CheckpointPrefix();
  const Status uninitialized = reader.saver->Save(*reader.session, prefix, 0).status();
  EXPECT_EQ(uninitialized.code(), StatusCode::kFailedPrecondition) << uninitialized;
  EXPECT_THAT(std::string(uninitialized.message()), HasSubstr("has not been initialized"));

  reader.Start();
  const auto saved = reader.saver->Save(*reader.session, prefix, 0);
  ASSERT_TRUE(saved.ok()) << saved.status();
  Reader other(PlainBatches);
  const Status restored = other.saver->Restore(*other.session, *saved);
  EXPECT_EQ(restored.code(), StatusCode::kInvalidArgument) << restored;
  EXPECT_THAT(std::string(restored.message()), HasSubstr("saved by another pipeline"));

  Saver without_positions(reader.program, {}, {});
  const auto bare = without_positions.Save(*reader.session, CheckpointPrefix(), 0);
  ASSERT_TRUE(bare.ok()) << bare.status();
  const Status missing = reader.saver->Restore(*reader.session, *bare);
  EXPECT_EQ(missing.code(), StatusCode::kNotFound) << missing;
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr(reader.program.NodeOf(reader.iterator->handle())->name()));

  Program first, second;
  const Variable variable(first, "v", {}, Zeros());
  const Saver saver(first, {}, {.iterators = {Iterator(PlainBatches(second))}});
  EXPECT_THAT(std::string(first.status().message()), HasSubstr("belongs to another program"));

  Program program;
  const Variable count(program, "count", {}, Zeros());
  const Iterator iterator(PlainBatches(program));
  const Saver twice(program, {}, {.iterators = {iterator, iterator}});
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("is given twice"));
}

}  // namespace
}  // namespace penstock::client
