// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/checkpoint_diff.h"

#include <string>

#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/testing/test_variant.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// Writes a checkpoint with a vector of floats and a variant that holds `state`. Returns its path.
std::string WriteCheckpoint(const std::string& name, float weight, int64_t state) {
  const std::string prefix = StrCat(testing::TempDir(), "/checkpoint_diff/", name);
  auto writer = *BundleWriter::Create(Env::Real(), prefix);
  CHECK_OK(writer->Add("w", Tensor::Vector<float>({1, weight})));
  const Variant variant = TestVariant::Of("state", {Tensor::Scalar<int64_t>(state)});
  CHECK_OK(writer->Add("iterator", Tensor::Scalar(variant)));
  CHECK_OK(writer->Finish());
  return prefix;
}

// Returns what PrintCheckpointDiff prints.
std::string PrintedDiff(const std::string& before, const std::string& after) {
  testing::internal::CaptureStdout();
  const StatusOr<bool> equal = PrintCheckpointDiff(Env::Real(), before, after);
  std::string text = testing::internal::GetCapturedStdout();
  CHECK_OK(equal.status());
  EXPECT_EQ(*equal, text.starts_with("0 of 2 tensors differ"));
  return text;
}

TEST(CheckpointDiff, EqualCheckpointsDoNotDiffer) {
  EXPECT_EQ(PrintedDiff(WriteCheckpoint("a", 2, 7), WriteCheckpoint("b", 2, 7)),
            "0 of 2 tensors differ\n");
}

TEST(CheckpointDiff, NamesWhatDiffers) {
  const std::string before = WriteCheckpoint("before", 2, 7);
  const std::string state = PrintedDiff(before, WriteCheckpoint("state", 2, 8));
  EXPECT_TRUE(state.starts_with("iterator ")) << state;
  EXPECT_NE(state.find(" the variants differ\n1 of 2"), std::string::npos) << state;
  const std::string weight = PrintedDiff(before, WriteCheckpoint("weight", 2.5, 7));
  EXPECT_TRUE(weight.starts_with("w ")) << weight;
  EXPECT_NE(weight.find(" 1 of 2 elements differ, by 0.5"), std::string::npos) << weight;
}

}  // namespace
}  // namespace penstock
