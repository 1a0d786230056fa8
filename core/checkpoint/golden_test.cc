// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints that TensorFlow 2.21 has written: we read them, and what we write of the same tensors
// is the same, byte for byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_format.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/checkpoints.h"
#include "core/checkpoint/merge_bundles.h"
#include "core/checkpoint/test_tensors.h"

namespace penstock {
namespace {

constexpr char kGolden[] = "core/checkpoint/testdata/golden";
constexpr char kMerged[] = "core/checkpoint/testdata/merged";

struct Saved {
  std::string name;
  Tensor tensor;
  std::string slice;  // "5 3 0,2:-", or empty
};

template <class T>
Saved Dense(const std::string& dtype) {
  Tensor tensor = Counting<T>({2, 3});
  if (std::is_signed_v<T>) {
    for (T& x : tensor.mutable_flat<T>()) x = static_cast<T>(-x);  // -0.0 for 0.0
  }
  return {"dense/" + dtype, std::move(tensor), ""};
}

// In the order in which they were saved.
std::vector<Saved> GoldenTensors() {
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += std::string("\0\xff", 2);
  std::vector<Saved> saved = {
      Dense<float>("float32"),
      Dense<double>("float64"),
      Dense<int32_t>("int32"),
      Dense<uint8_t>("uint8"),
      Dense<int16_t>("int16"),
      Dense<int8_t>("int8"),
      Dense<int64_t>("int64"),
      Dense<uint16_t>("uint16"),
      Dense<uint32_t>("uint32"),
      Dense<uint64_t>("uint64"),
      {"dense/bool", Tensor::Vector<uint8_t>({1, 0, 1}).Reinterpreted(DType::kBool, {3}), ""},
      {"dense/half", Tensor::Vector<half>({half(1.5f), half(-2.0f)}), ""},
      {"dense/bfloat16", Tensor::Vector<bfloat16>({bfloat16(1.5f), bfloat16(-2.0f)}), ""},
      {"dense/complex64", Tensor::Vector<std::complex<float>>({{1, 2}}), ""},
      {"dense/complex128", Tensor::Vector<std::complex<double>>({{1, -2}}), ""},
      {"scalar", Tensor::Scalar<int64_t>(42), ""},
      {"empty", Tensor(DType::kFloat, {0, 3}), ""},
      {"strings", Tensor::Of<std::string>({2, 2}, {"", "a", "hello", bytes}), ""},
      {"string_scalar", Tensor::Scalar<std::string>("x"), ""},
      {"no_strings", Tensor(DType::kString, {0}), ""},
      {"part", Counting<float>({2, 3}), "5 3 0,2:-"},
      {"part", Counting<float>({3, 3}, 6), "5 3 2,3:-"},
      {"grid", Tensor::Of<int32_t>({2, 2}, {0, 1, 10, 11}), "2 200 0,2:0,2"},
      {"grid", Counting<int32_t>({2, 198}, 100), "2 200 0,2:2,198"},
      {"whole_as_slice", Counting<float>({2}, 1), "2 0,2"},
  };
  for (int i = 0; i < 30; ++i) {
    saved.push_back({absl::StrFormat("layer_%02d/weights", i),
                     Tensor::Vector<float>({static_cast<float>(i)}), ""});
  }
  return saved;
}

Status SaveAll(const std::string& prefix, const std::vector<Saved>& tensors) {
  ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(Env::Real(), prefix));
  for (const Saved& saved : tensors) {
    if (saved.slice.empty()) {
      RETURN_IF_ERROR(writer->Add(saved.name, saved.tensor));
    } else {
      ASSIGN_OR_RETURN(const ShapeAndSlice part, ShapeAndSlice::Parse(saved.slice));
      RETURN_IF_ERROR(writer->AddSlice(saved.name, part.shape, part.slice, saved.tensor));
    }
  }
  return writer->Finish();
}

void ExpectSameFile(const std::string& ours, const std::string& golden) {
  const auto a = Env::Real().ReadFile(ours);
  const auto b = Env::Real().ReadFile(golden);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_TRUE(*a == *b) << ours << " differs from " << golden;
}

TEST(Golden, IsRead) {
  ASSERT_EQ(VerifyCheckpoint(Env::Real(), kGolden), OkStatus());
  const auto reader = BundleReader::Open(Env::Real(), kGolden);
  ASSERT_EQ(reader.status(), OkStatus());
  const std::vector<Saved> tensors = GoldenTensors();
  EXPECT_EQ((*reader)->tensors().size(), tensors.size() - 2);  // two come in two slices
  for (const Saved& saved : tensors) {
    StatusOr<Tensor> read = (*reader)->Read(saved.name);
    if (!saved.slice.empty()) {
      read = (*reader)->ReadSlice(saved.name, ShapeAndSlice::Parse(saved.slice)->slice);
    }
    ASSERT_EQ(read.status(), OkStatus());
    EXPECT_TRUE(SameTensor(*read, saved.tensor)) << saved.name << " is " << read->ToString();
  }
  EXPECT_TRUE(SameTensor(*(*reader)->Read("part"), Counting<float>({5, 3})));
}

TEST(Golden, IsWrittenByteForByte) {
  const std::string prefix = testing::TempDir() + "/golden";
  ASSERT_EQ(SaveAll(prefix, GoldenTensors()), OkStatus());
  ExpectSameFile(IndexPath(prefix), IndexPath(kGolden));
  ExpectSameFile(DataPath(prefix, 0, 1), DataPath(kGolden, 0, 1));
}

TEST(Golden, IsMergedByteForByte) {
  const std::string directory = testing::TempDir();
  const std::vector<std::string> parts = {directory + "/t/part-0", directory + "/t/part-1"};
  ASSERT_EQ(SaveAll(parts[0], {{"a", Tensor::Vector<float>({1, 2}), ""},
                               {"p", Tensor::Vector<int32_t>({1, 2}), "4 0,2"}}),
            OkStatus());
  ASSERT_EQ(SaveAll(parts[1], {{"b", Tensor::Vector<std::string>({"b"}), ""},
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
