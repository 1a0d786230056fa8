// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/base_checkpoints.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/checkpoints.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class BaseCheckpoints : public testing::Test {
 protected:
  BaseCheckpoints() { CHECK_OK(env_.CreateDirectories(directory_)); }

  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }
  void Write(const std::string& name, const std::map<std::string, Tensor>& tensors) {
    const auto writer = BundleWriter::Create(env_, PathOf(name));
    CHECK_OK(writer.status());
    for (const auto& [key, tensor] : tensors) CHECK_OK((*writer)->Add(key, tensor));
    CHECK_OK((*writer)->Finish());
  }
  void WriteBase(const std::string& name, const std::string& base) {
    Write(name, {{"a/base_checkpoint", Tensor::Scalar(base)}, {"a/keys", Tensor::Scalar(1)}});
  }
  std::string Error(const std::string& name) {
    return std::string(ChainOf(env_, PathOf(name)).status().message());
  }

  Env& env_ = Env::Real();
  const std::string directory_ = StrCat(testing::TempDir(), "/bases_", env_.RandomU64());
};

TEST_F(BaseCheckpoints, FormAChain) {
  WriteBase("a", "");
  WriteBase("b", "a");
  Write("c", {{"x/base_checkpoint", Tensor::Scalar(std::string("b"))},
              {"y/base_checkpoint", Tensor::Scalar(std::string())},
              {"z/base_checkpoint", Tensor::Scalar(std::string("b"))}});
  EXPECT_THAT(*ChainOf(env_, PathOf("c")), ElementsAre(PathOf("a"), PathOf("b"), PathOf("c")));
  EXPECT_TRUE(VerifyCheckpoint(env_, PathOf("c")).ok());
  ASSERT_TRUE(env_.RemoveFile(PathOf("a.data-00000-of-00001")).ok());
  EXPECT_FALSE(VerifyCheckpoint(env_, PathOf("c")).ok());
  ASSERT_TRUE(env_.RemoveFile(PathOf("a.index")).ok());
  EXPECT_THAT(Error("c"), HasSubstr("c holds changes only, and builds on others"));
}

TEST_F(BaseCheckpoints, MustBeOneFileOfTheDirectory) {
  WriteBase("up", "../a");
  EXPECT_THAT(Error("up"), HasSubstr("must name a checkpoint in the same directory, is '../a'"));
  Write("two", {{"x/base_checkpoint", Tensor::Scalar(std::string("a"))},
                {"y/base_checkpoint", Tensor::Scalar(std::string("b"))}});
  EXPECT_THAT(Error("two"), HasSubstr("builds on both 'a' and 'b'"));
  Write("number", {{"x/base_checkpoint", Tensor::Scalar(1)}});
  EXPECT_THAT(Error("number"), HasSubstr("'x/base_checkpoint' must be a string scalar"));
  WriteBase("round", "about");
  WriteBase("about", "round");
  EXPECT_THAT(Error("round"), HasSubstr("which builds on itself"));
  EXPECT_TRUE(absl::IsNotFound(BaseOf(env_, PathOf("none")).status()));
}

}  // namespace
}  // namespace penstock
