// SPDX-License-Identifier: Apache-2.0
//
// Loses power at every operation of saving and merging: afterwards a complete checkpoint is
// visible, or none. Also makes every operation fail once, as on a full disk.
#include <gtest/gtest.h>

#include <optional>

#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/checkpoint_state.h"
#include "core/checkpoint/checkpoints.h"
#include "core/checkpoint/merge_bundles.h"
#include "core/checkpoint/testing/crash_env.h"

namespace penstock {
namespace {

constexpr char kPrefix[] = "/ckpt/run/model-1";

Status Save(Env& env, const std::string& prefix, float value) {
  ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(env, prefix));
  RETURN_IF_ERROR(writer->Add("w", Tensor::Vector<float>({value, value})));
  RETURN_IF_ERROR(writer->Add("name", Tensor::Scalar<std::string>("value")));
  return writer->Finish();
}

// Two tasks save, and their checkpoints are merged.
Status SaveSharded(Env& env, const std::string& prefix, float value) {
  std::vector<std::string> parts;
  for (const char* name : {"w", "v"}) {
    parts.push_back(StrCat(prefix, "_temp/part-", name));
    ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(env, parts.back()));
    RETURN_IF_ERROR(writer->Add(name, Tensor::Vector<float>({value, value})));
    const float half = name[0] == 'w' ? 0 : 1;
    const TensorSlice slice{{{name[0] == 'w' ? 0 : 1, 1}}};
    RETURN_IF_ERROR(writer->AddSlice("halves", {2}, slice, Tensor::Vector<float>({half})));
    RETURN_IF_ERROR(writer->Finish());
  }
  return MergeBundles(env, parts, prefix);
}

// Returns the value of the visible checkpoint; nullopt if there is none. Fails the test if the
// checkpoint is incomplete.
std::optional<float> VisibleValue(Env& env) {
  if (!env.FileExists(IndexPath(kPrefix))) return std::nullopt;
  EXPECT_EQ(VerifyCheckpoint(env, kPrefix), OkStatus());
  const auto reader = BundleReader::Open(env, kPrefix);
  EXPECT_EQ(reader.status(), OkStatus());
  if (!reader.ok()) return std::nullopt;
  const auto w = (*reader)->Read("w");
  EXPECT_EQ(w.status(), OkStatus());
  if (!w.ok()) return std::nullopt;
  EXPECT_EQ(w->flat<float>()[0], w->flat<float>()[1]);
  return w->flat<float>()[0];
}

using SaveFn = Status (*)(Env&, const std::string&, float);
class CrashTest : public testing::TestWithParam<SaveFn> {};

TEST_P(CrashTest, NewCheckpointIsWholeOrInvisible) {
  int visible = 0, invisible = 0;
  bool crashed = true;
  for (int operation = 0; crashed; ++operation) {
    for (int seed = -2; seed < 20; ++seed) {
      CrashEnv env;
      env.CrashAt(operation);
      const Status saved = GetParam()(env, kPrefix, 7);
      crashed = env.operations() > operation;
      env.Restart(seed == -2   ? CrashEnv::Unsynced::kLost
                  : seed == -1 ? CrashEnv::Unsynced::kKept
                               : CrashEnv::Unsynced::kRandom,
                  seed);
      const auto value = VisibleValue(env);
      ++(value.has_value() ? visible : invisible);
      if (value.has_value()) {
        EXPECT_EQ(*value, 7);
      }
      if (saved.ok()) {
        EXPECT_TRUE(value.has_value()) << "lost, operation " << operation;
      }
    }
  }
  EXPECT_GT(visible, 0);
  EXPECT_GT(invisible, 0);
}

TEST_P(CrashTest, OverwritingLeavesOldOrNewOrNone) {
  int old = 0;
  bool crashed = true;
  for (int operation = 0; crashed; ++operation) {
    for (int seed = 0; seed < 20; ++seed) {
      CrashEnv env;
      ASSERT_EQ(GetParam()(env, kPrefix, 1), OkStatus());
      const int first = env.operations() + operation;
      env.CrashAt(first);
      const Status saved = GetParam()(env, kPrefix, 2);
      crashed = env.operations() > first;
      env.Restart(CrashEnv::Unsynced::kRandom, seed);
      const auto value = VisibleValue(env);
      if (value == 1.0f) ++old;
      if (value.has_value()) {
        EXPECT_TRUE(value == 1.0f || value == 2.0f) << *value;
      }
      if (saved.ok()) {
        EXPECT_EQ(value, 2.0f);
      }
    }
  }
  EXPECT_GT(old, 0);
}

TEST_P(CrashTest, AFullDiskKeepsOtherCheckpointsAndLeavesNoTemporaryFiles) {
  int failures = 0;
  bool reached = true;
  for (int operation = 0; reached; ++operation) {
    CrashEnv env;
    ASSERT_EQ(Save(env, "/ckpt/run/model-0", 1), OkStatus());
    const int first = env.operations() + operation;
    env.FailOnceAt(first);
    const Status saved = GetParam()(env, kPrefix, 2);
    reached = env.operations() > first;
    EXPECT_EQ(VerifyCheckpoint(env, "/ckpt/run/model-0"), OkStatus());
    if (saved.ok()) {
      EXPECT_EQ(VisibleValue(env), 2.0f);
    }
    if (saved.ok()) continue;
    ++failures;
    EXPECT_EQ(saved.code(), StatusCode::kResourceExhausted) << saved;
    for (const std::string& path : env.Paths()) {
      EXPECT_EQ(path.find(".tempstate"), std::string::npos) << path;
    }
  }
  EXPECT_GT(failures, 3);
}

INSTANTIATE_TEST_SUITE_P(All, CrashTest, testing::Values(&Save, &SaveSharded),
                         [](const auto& info) { return info.index == 0 ? "Save" : "SaveSharded"; });

TEST(CheckpointState, IsOldOrNewAfterACrash) {
  for (int operation = 0; operation < 20; ++operation) {
    for (int seed = 0; seed < 10; ++seed) {
      CrashEnv env;
      ASSERT_EQ(Save(env, "/d/m-1", 1), OkStatus());
      ASSERT_EQ(WriteCheckpointState(env, "/d", {.latest = "m-1", .all = {"m-1"}}), OkStatus());
      ASSERT_EQ(Save(env, "/d/m-2", 1), OkStatus());
      env.CrashAt(env.operations() + operation);
      const Status written =
          WriteCheckpointState(env, "/d", {.latest = "m-2", .all = {"m-1", "m-2"}});
      env.Restart(CrashEnv::Unsynced::kRandom, seed);
      const auto state = ReadCheckpointState(env, "/d");
      ASSERT_EQ(state.status(), OkStatus());
      EXPECT_TRUE(state->latest == "m-2" || (state->latest == "m-1" && !written.ok()));
    }
  }
}

}  // namespace
}  // namespace penstock
