// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <string>
#include <vector>

#include "core/op/testing/op_runner.h"
#include "core/tensor/variant.h"
#include "kernels/io/swap_file.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

Status NotCancelled() { return OkStatus(); }

StatusOr<Tensor> SwapIn(const Tensor& handle, DType dtype) {
  return OpRunner("_SwapIn").In(handle).Attr("T", dtype).Run1();
}

TEST(SwapTest, ATensorComesBackAsItWas) {
  Tensor large(DType::kFloat, Shape({1 << 12, 1 << 10}));
  for (int64_t i = 0; i < large.num_elements(); ++i) large.mutable_data<float>()[i] = 0.5f * i;
  {
    const auto handle = OpRunner("_SwapOut").In(large).Run1();
    ASSERT_EQ(handle.status(), OkStatus());
    EXPECT_GE(SwapFile::OfProcess().bytes_in_use(), 16 << 20);
    for (int times = 0; times < 2; ++times) {
      const auto back = SwapIn(*handle, DType::kFloat);
      ASSERT_EQ(back.status(), OkStatus());
      EXPECT_EQ(back->shape(), large.shape());
      EXPECT_EQ(back->flat<float>(), large.flat<float>());
      EXPECT_FALSE(back->SharesBufferWith(large));
    }
    const auto wrong = SwapIn(*handle, DType::kInt32);
    EXPECT_THAT(wrong.status().message(), HasSubstr("what _SwapOut made of a int32"));
  }
  EXPECT_EQ(SwapFile::OfProcess().bytes_in_use(), 0) << "the handle's end frees its part";
}

TEST(SwapTest, EmptyTensorsAndScalarsToo) {
  for (const Tensor& tensor : {Tensor(DType::kInt64, Shape({0, 3})), Tensor::Scalar<int64_t>(7)}) {
    const auto handle = OpRunner("_SwapOut").In(tensor).Run1();
    ASSERT_EQ(handle.status(), OkStatus());
    const auto back = SwapIn(*handle, DType::kInt64);
    ASSERT_EQ(back.status(), OkStatus());
    EXPECT_EQ(back->shape(), tensor.shape());
    EXPECT_EQ(back->flat<int64_t>(), tensor.flat<int64_t>());
  }
}

TEST(SwapTest, RefusesWhatIsNoHandleAndWhatIsNotPlain) {
  EXPECT_EQ(SwapIn(Tensor::Scalar(Variant{}), DType::kFloat).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(OpRunner("_SwapOut").In(Tensor::Scalar(std::string("a"))).Run1().status().code(),
            StatusCode::kInvalidArgument);
}

TEST(SwapFileTest, PartsAreUsedAgainAndJoined) {
  SwapFile file(testing::TempDir());
  const int64_t a = *file.Take(100), b = *file.Take(50), c = *file.Take(10);
  EXPECT_EQ((std::vector<int64_t>{a, b, c}), (std::vector<int64_t>{0, 100, 150}));
  file.Return(a, 100);
  file.Return(b, 50);
  EXPECT_EQ(*file.Take(150), 0) << "both parts together";
  file.Return(0, 150);
  file.Return(c, 10);
  EXPECT_EQ(file.bytes_in_use(), 0);
  EXPECT_EQ(*file.Take(1000), 0);
}

TEST(SwapFileTest, ErrorsNameTheDirectory) {
  SwapFile nowhere("/no/such/directory");
  const Status none = nowhere.Take(10).status();
  EXPECT_EQ(none.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("swapping tensors to a file in /no/such/directory: no file can be made: No "
                        "such file or directory; set TMPDIR to"));

  SwapFile file(testing::TempDir());
  const int64_t at = *file.Take(10);
  char bytes[10] = {};
  const Status early = file.Read(at, bytes, 10, NotCancelled);
  EXPECT_EQ(early.code(), StatusCode::kDataLoss) << "nothing was written: " << early;
  const Status cancelled = file.Write(at, bytes, 10, [] { return Cancelled("enough"); });
  EXPECT_EQ(cancelled.code(), StatusCode::kCancelled);
}

// A limit on the file's size has the same effect as a full disk.
TEST(SwapFileTest, AFullDiskIsNamedAndLeavesTheRest) {
  SwapFile file(testing::TempDir());
  const std::string bytes(4096, 'x');
  const int64_t first = *file.Take(4096), second = *file.Take(4096);
  ASSERT_TRUE(file.Write(first, bytes.data(), 4096, NotCancelled).ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status full = file.Write(second, bytes.data(), 4096, NotCancelled);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr(testing::TempDir()));
  EXPECT_THAT(std::string(full.message()), HasSubstr("set TMPDIR to a directory with more room"));

  std::string back(4096, ' ');
  EXPECT_TRUE(file.Read(first, back.data(), 4096, NotCancelled).ok());
  EXPECT_EQ(back, bytes);
  EXPECT_TRUE(file.Write(second, bytes.data(), 4096, NotCancelled).ok()) << "there is room again";
}

}  // namespace
}  // namespace penstock
