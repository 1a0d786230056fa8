// SPDX-License-Identifier: Apache-2.0
//
// Reads checkpoints that TensorFlow 2.21 has written, and checks that Penstock writes the same
// bytes for the same tensors.
#include <gtest/gtest.h>

#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/checkpoints.h"
#include "core/checkpoint/merge_bundles.h"
#include "core/checkpoint/testing/golden_tensors.h"

namespace penstock {
namespace {

constexpr char kGolden[] = "core/checkpoint/testdata/golden";
constexpr char kMerged[] = "core/checkpoint/testdata/merged";

Status SaveBundle(const std::string& prefix, const std::vector<Saved>& tensors) {
  ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(Env::Real(), prefix));
  return SaveAll(*writer, tensors);
}

TEST(Golden, IsRead) {
  ASSERT_EQ(VerifyCheckpoint(Env::Real(), kGolden), OkStatus());
  const auto reader = BundleReader::Open(Env::Real(), kGolden);
  ASSERT_EQ(reader.status(), OkStatus());
  const std::vector<Saved> tensors = GoldenTensors();
  EXPECT_EQ((*reader)->tensors().size(),
            tensors.size() - 2);  // two of the tensors have two slices each
  ExpectHolds(**reader, tensors);
  EXPECT_TRUE(SameTensor(*(*reader)->Read("part"), Counting<float>({5, 3})));
}

TEST(Golden, IsWrittenByteForByte) {
  const std::string prefix = testing::TempDir() + "/golden";
  ASSERT_EQ(SaveBundle(prefix, GoldenTensors()), OkStatus());
  ExpectSameFile(IndexPath(prefix), IndexPath(kGolden));
  ExpectSameFile(DataPath(prefix, 0, 1), DataPath(kGolden, 0, 1));
}

TEST(Golden, IsMergedByteForByte) {
  const std::string directory = testing::TempDir();
  const std::vector<std::string> parts = {directory + "/t/part-0", directory + "/t/part-1"};
  ASSERT_EQ(SaveBundle(parts[0], {{"a", Tensor::Vector<float>({1, 2}), ""},
                                  {"p", Tensor::Vector<int32_t>({1, 2}), "4 0,2"}}),
            OkStatus());
  ASSERT_EQ(SaveBundle(parts[1], {{"b", Tensor::Vector<std::string>({"b"}), ""},
                                  {"p", Tensor::Vector<int32_t>({3, 4}), "4 2,2"}}),
            OkStatus());
  const std::string merged = directory + "/merged";
  ASSERT_EQ(MergeBundles(Env::Real(), parts, merged), OkStatus());
  ExpectSameFile(IndexPath(merged), IndexPath(kMerged));
  for (int shard : {0, 1}) ExpectSameFile(DataPath(merged, shard, 2), DataPath(kMerged, shard, 2));
  EXPECT_FALSE(Env::Real().FileExists(directory + "/t"));
}

}  // namespace
}  // namespace penstock
