// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/base/env.h"
#include "core/checkpoint/checkpoints.h"
#include "core/checkpoint/testing/test_tensors.h"
#include "core/op/testing/op_runner.h"

namespace penstock {
namespace {

using Strings = std::vector<std::string>;

std::string Path(const std::string& name) {
  return StrCat(testing::TempDir(),  // the directory ends in a slash
                testing::UnitTest::GetInstance()->current_test_info()->name(), "/", name);
}
Tensor Text(const std::string& text) { return Tensor::Scalar(text); }
Tensor Texts(const Strings& texts) { return Tensor::Vector(texts); }

Status Save(const std::string& prefix, const Strings& names, const Strings& slices,
            const std::vector<Tensor>& tensors) {
  return OpRunner("SaveV2")
      .In(Text(prefix))
      .In(Texts(names))
      .In(Texts(slices))
      .InList(tensors)
      .Run()
      .status();
}

StatusOr<std::vector<Tensor>> Restore(const std::string& prefix, const Strings& names,
                                      const Strings& slices, const std::vector<DType>& dtypes) {
  return OpRunner("RestoreV2")
      .In(Text(prefix))
      .In(Texts(names))
      .In(Texts(slices))
      .Attr("dtypes", dtypes)
      .Run();
}

#define EXPECT_ERROR(expression, status_code, text)                                   \
  do {                                                                                \
    const Status status = (expression);                                               \
    EXPECT_EQ(status.code(), StatusCode::status_code) << status;                      \
    EXPECT_NE(std::string(status.message()).find(text), std::string::npos) << status; \
  } while (false)

TEST(SaveRestore, RoundTrips) {
  const Tensor w = Counting<float>({3, 2}), names = Texts({"a", "b"});
  ASSERT_EQ(Save(Path("m"), {"w", "names"}, {"", ""}, {w, names}), OkStatus());
  const auto restored = Restore(Path("m"), {"names", "w", "w"}, {"", "", "3 2 1,2:0,1"},
                                {DType::kString, DType::kFloat, DType::kFloat});
  ASSERT_EQ(restored.status(), OkStatus());
  EXPECT_TRUE(SameTensor((*restored)[0], names));
  EXPECT_TRUE(SameTensor((*restored)[1], w));
  EXPECT_TRUE(SameTensor((*restored)[2], Tensor::Of<float>({2, 1}, {2, 4})));
}

TEST(SaveRestore, ErrorsNameTheTensor) {
  ASSERT_EQ(Save(Path("m"), {"w"}, {""}, {Counting<float>({3})}), OkStatus());
  EXPECT_ERROR(Restore(Path("m"), {"v"}, {""}, {DType::kFloat}).status(), kNotFound,
               "Key v not found in checkpoint");
  EXPECT_ERROR(Restore(Path("m"), {"w"}, {""}, {DType::kInt32}).status(), kInvalidArgument,
               "tensor_name = w; expected dtype int32 does not equal original dtype float");
  EXPECT_ERROR(Restore(Path("m"), {"w"}, {"4 0,2"}, {DType::kFloat}).status(), kInvalidArgument,
               "has shape [3], is to be restored as a part of [4]");
  EXPECT_ERROR(Restore(Path("n"), {"w"}, {""}, {DType::kFloat}).status(), kNotFound,
               "there is no checkpoint");
  EXPECT_ERROR(Restore(Path("m"), {"w", "w"}, {""}, {DType::kFloat}).status(), kInvalidArgument,
               "got 2 tensor_names and 1 shape_and_slices for 1 tensors");
  EXPECT_ERROR(Save(Path("x"), {"w"}, {"4 0,2"}, {Counting<float>({3})}), kInvalidArgument,
               "has shape [2], is given as [3]");
  EXPECT_ERROR(Save(Path("x"), {"w", "w"}, {"", ""}, {Counting<float>({3}), Counting<float>({3})}),
               kInvalidArgument, "saved twice");
  // A failed write leaves no temporary files behind.
  EXPECT_EQ(Env::Real().ListDirectory(Path("."))->size(), 2);
}

// Two tasks save their slices of a variable. Later, three tasks restore three other slices.
TEST(SaveRestore, ShardsAreMergedAndCutAnew) {
  Strings parts;
  for (int task = 0; task < 2; ++task) {
    const auto name = OpRunner("ShardedFilename")
                          .In(Text(Path("m_temp/part")))
                          .In(Tensor::Scalar<int32_t>(task))
                          .In(Tensor::Scalar<int32_t>(2))
                          .Run1();
    ASSERT_EQ(name.status(), OkStatus());
    parts.push_back(name->scalar<std::string>());
    ASSERT_EQ(
        Save(parts.back(), {"w", StrCat("bias", task)}, {StrCat("6 2 ", 3 * task, ",3:-"), ""},
             {Counting<float>({3, 2}, 6 * task), Tensor::Scalar<int32_t>(task)}),
        OkStatus());
  }
  EXPECT_EQ(parts[1], Path("m_temp/part-00001-of-00002"));
  ASSERT_EQ(OpRunner("MergeV2Checkpoints").In(Texts(parts)).In(Text(Path("m"))).Run().status(),
            OkStatus());
  EXPECT_EQ(VerifyCheckpoint(Env::Real(), Path("m")), OkStatus());
  EXPECT_FALSE(Env::Real().FileExists(Path("m_temp")));
  const auto restored = Restore(
      Path("m"), {"w", "w", "w", "w", "bias1"}, {"6 2 0,2:-", "6 2 2,2:-", "6 2 4,2:-", "", ""},
      {DType::kFloat, DType::kFloat, DType::kFloat, DType::kFloat, DType::kInt32});
  ASSERT_EQ(restored.status(), OkStatus());
  for (int task = 0; task < 3; ++task) {
    EXPECT_TRUE(SameTensor((*restored)[task], Counting<float>({2, 2}, 4 * task)));
  }
  EXPECT_TRUE(SameTensor((*restored)[3], Counting<float>({6, 2})));
  EXPECT_EQ((*restored)[4].scalar<int32_t>(), 1);
}

// The oldest TensorFlow programs save all tensors with one op, and restore each tensor with an op
// of its own.
TEST(V1, RoundTrips) {
  const std::string path = Path("v1");
  ASSERT_EQ(Env::Real().CreateDirectories(Path("")), OkStatus());
  const Tensor w = Counting<float>({3, 2}), names = Texts({"a", "b"});
  ASSERT_EQ(
      OpRunner("Save").In(Text(path)).In(Texts({"w", "names"})).InList({w, names}).Run().status(),
      OkStatus());
  const auto restore = [&](const std::string& pattern, const std::string& name, DType dtype,
                           int64_t shard = -1) {
    return OpRunner("Restore")
        .In(Text(pattern))
        .In(Text(name))
        .Attr("dt", dtype)
        .Attr("preferred_shard", shard)
        .Run1();
  };
  EXPECT_TRUE(SameTensor(*restore(path, "w", DType::kFloat), w));
  EXPECT_TRUE(SameTensor(*restore(path, "names", DType::kString), names));
  const auto part = OpRunner("RestoreSlice")
                        .In(Text(path))
                        .In(Text("w"))
                        .In(Text("3 2 1,2:0,1"))
                        .Attr("dt", DType::kFloat)
                        .Run1();
  ASSERT_EQ(part.status(), OkStatus());
  EXPECT_TRUE(SameTensor(*part, Tensor::Of<float>({2, 1}, {2, 4})));
  // RestoreV2 also reads the V1 format.
  const auto restored =
      Restore(path, {"w", "names"}, {"3 2 0,1:-", ""}, {DType::kFloat, DType::kString});
  ASSERT_EQ(restored.status(), OkStatus());
  EXPECT_TRUE(SameTensor((*restored)[0], Tensor::Of<float>({1, 2}, {0, 1})));

  EXPECT_ERROR(restore(path, "v", DType::kFloat).status(), kNotFound, "Key v not found");
  EXPECT_ERROR(restore(path, "w", DType::kInt32).status(), kInvalidArgument,
               "tensor_name = w; expected dtype int32 does not equal original dtype float");
  EXPECT_ERROR(restore(Path("none"), "w", DType::kFloat).status(), kNotFound,
               "there is no checkpoint");
  EXPECT_ERROR(OpRunner("Save").In(Text(path)).In(Texts({"w"})).InList({w, w}).Run().status(),
               kInvalidArgument, "got 1 tensor_names");
}

TEST(V1, ShardsAreRestoredTogether) {
  ASSERT_EQ(Env::Real().CreateDirectories(Path("")), OkStatus());
  for (int task = 0; task < 2; ++task) {
    ASSERT_EQ(OpRunner("SaveSlices")
                  .In(Text(Path(StrCat("m-0000", task, "-of-00002"))))
                  .In(Texts({"w", StrCat("bias", task)}))
                  .In(Texts({StrCat("6 2 ", 3 * task, ",3:-"), ""}))
                  .InList({Counting<float>({3, 2}, 6 * task), Tensor::Scalar<int32_t>(task)})
                  .Run()
                  .status(),
              OkStatus());
  }
  for (const int64_t preferred : {-1, 0, 1, 7}) {
    const auto restore = [&](const std::string& name, const std::string& slice, DType dtype) {
      return OpRunner("RestoreSlice")
          .In(Text(Path("m-\?\?\?\?\?-of-00002")))
          .In(Text(name))
          .In(Text(slice))
          .Attr("dt", dtype)
          .Attr("preferred_shard", preferred)
          .Run1();
    };
    for (const auto& [slice, expected] : {std::pair{"", Counting<float>({6, 2})},
                                          {"6 2 0,3:-", Counting<float>({3, 2})},
                                          {"6 2 3,3:-", Counting<float>({3, 2}, 6)},
                                          {"6 2 2,2:-", Counting<float>({2, 2}, 4)}}) {
      const auto tensor = restore("w", slice, DType::kFloat);
      ASSERT_EQ(tensor.status(), OkStatus());
      EXPECT_TRUE(SameTensor(*tensor, expected)) << slice;
    }
    EXPECT_EQ(restore("bias1", "", DType::kInt32)->scalar<int32_t>(), 1);
  }
}

TEST(ImmutableConst, IsTheFilesBytes) {
  const std::string path = testing::TempDir() + "constant";
  const Tensor numbers = Counting<float>({2, 3});
  ASSERT_EQ(Env::Real().WriteFileAtomically(
                path, {static_cast<const char*>(numbers.raw_data()), numbers.bytes()}),
            OkStatus());
  const auto read = [&](DType dtype, const Shape& shape, const std::string& file) {
    return OpRunner("ImmutableConst")
        .Attr("dtype", dtype)
        .Attr("shape", shape)
        .Attr("memory_region_name", file)
        .Run1();
  };
  EXPECT_TRUE(SameTensor(*read(DType::kFloat, {2, 3}, path), numbers));
  EXPECT_TRUE(SameTensor(*read(DType::kFloat, {2}, path), Tensor::Vector<float>({0, 1})));
  EXPECT_EQ(read(DType::kFloat, {0}, path)->num_elements(), 0);
  EXPECT_ERROR(read(DType::kFloat, {4, 3}, path).status(), kInvalidArgument,
               "has 24 bytes, too few for float[4,3]");
  EXPECT_ERROR(read(DType::kFloat, {2}, "/none").status(), kNotFound, "/none");
  EXPECT_ERROR(read(DType::kString, {2}, path).status(), kUnimplemented, "of type string");
}

TEST(ShardedFilespec, IsAPattern) {
  EXPECT_EQ(OpRunner("ShardedFilespec")
                .In(Text("m"))
                .In(Tensor::Scalar<int32_t>(12))
                .Run1()
                ->scalar<std::string>(),
            "m-\?\?\?\?\?-of-00012");
}

TEST(Files, AreWrittenReadAndFound) {
  const std::string contents("bytes \0 and more", 16);
  for (const char* name : {"a/one.txt", "a/two.txt", "b/one.txt", "b/three.dat"}) {
    ASSERT_EQ(OpRunner("WriteFile").In(Text(Path(name))).In(Text(contents)).Run().status(),
              OkStatus());
  }
  EXPECT_EQ(OpRunner("ReadFile").In(Text(Path("a/one.txt"))).Run1()->scalar<std::string>(),
            contents);
  EXPECT_ERROR(OpRunner("ReadFile").In(Text(Path("a/none"))).Run1().status(), kNotFound, "a/none");
  const struct {
    Strings patterns;
    Strings found;
  } cases[] = {
      {{"a/*.txt"}, {"a/one.txt", "a/two.txt"}},
      {{"*/one.???"}, {"a/one.txt", "b/one.txt"}},
      {{"b/[o-t]*"}, {"b/one.txt", "b/three.dat"}},
      {{"a/one.txt"}, {"a/one.txt"}},
      {{"c/*"}, {}},
      {{"b/*", "*/one.txt"}, {"a/one.txt", "b/one.txt", "b/three.dat"}},
  };
  for (const auto& c : cases) {
    Strings patterns, found;
    for (const std::string& pattern : c.patterns) patterns.push_back(Path(pattern));
    for (const std::string& path : c.found) found.push_back(Path(path));
    const auto matching = OpRunner("MatchingFiles").In(Texts(patterns)).Run1();
    ASSERT_EQ(matching.status(), OkStatus());
    EXPECT_EQ(matching->flat<std::string>(), absl::MakeConstSpan(found)) << c.patterns[0];
  }
}

// Opening a FIFO would wait for another process, and the wait could not be cancelled.
TEST(Files, AFifoIsRefused) {
  ASSERT_EQ(Env::Real().CreateDirectories(Path("")), OkStatus());
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_ERROR(OpRunner("ReadFile").In(Text(Path("fifo"))).Run().status(), kFailedPrecondition,
               "it is a FIFO, expected a regular file");
  EXPECT_FALSE(OpRunner("WriteFile").In(Text(Path("fifo"))).In(Text("x")).Run().ok());
}

}  // namespace
}  // namespace penstock
