// SPDX-License-Identifier: Apache-2.0
#include "core/base/rooted_env.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "core/base/check.h"
#include "core/base/match_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RootedEnvTest : public testing::Test {
 protected:
  RootedEnvTest() {
    std::string name = StrCat(testing::TempDir(), "rootedXXXXXX");
    top_ = mkdtemp(name.data());
    root_ = StrCat(top_, "/root");
    CHECK_OK(real_.CreateDirectories(StrCat(root_, "/inner")));
    CHECK_OK(real_.WriteFileAtomically(StrCat(top_, "/secret"), "secret"));
    CHECK_OK(real_.WriteFileAtomically(StrCat(root_, "/a.txt"), "a"));
    env_ = *RootedEnv::Create(real_, root_);
  }

  void Link(const std::string& target, const std::string& name) {
    CHECK(symlink(target.c_str(), StrCat(root_, "/", name).c_str()) == 0);
  }
  // Calls each operation with `path` and returns their statuses, in order.
  std::vector<Status> TryAll(const std::string& path) {
    return {env_->ReadFile(path).status(),        env_->OpenFile(path).status(),
            env_->NewWritableFile(path).status(), env_->ListDirectory(path).status(),
            env_->CreateDirectories(path),        env_->Rename("a.txt", path),
            env_->Rename(path, "b.txt"),          env_->RemoveFile(path),
            env_->RemoveDirectory(path),          env_->SyncDirectory(path),
            env_->WriteFileAtomically(path, "x")};
  }

  Env& real_ = Env::Real();
  std::string top_, root_;
  std::unique_ptr<RootedEnv> env_;
};

TEST_F(RootedEnvTest, AbsoluteAndRelativePathsMeanTheSameFile) {
  EXPECT_EQ(*env_->ReadFile("a.txt"), "a");
  EXPECT_EQ(*env_->ReadFile(StrCat(root_, "/a.txt")), "a");
  EXPECT_EQ(*env_->ReadFile(StrCat(root_, "//inner/../a.txt")), "a");
  EXPECT_EQ((*env_->OpenFile("inner/../a.txt"))->size(), 1);
  EXPECT_THAT(*env_->ListDirectory("."), ElementsAre("a.txt", "inner"));
  EXPECT_THAT(*env_->ListDirectory(root_), ElementsAre("a.txt", "inner"));
}

TEST_F(RootedEnvTest, WritesRenamesAndRemoves) {
  ASSERT_TRUE(env_->CreateDirectories(StrCat(root_, "/x/y")).ok());
  ASSERT_TRUE(env_->CreateDirectories("x/y/z").ok());
  ASSERT_TRUE(env_->CreateDirectories(root_).ok());
  ASSERT_TRUE(env_->WriteFileAtomically("x/y/file", "new").ok());
  EXPECT_EQ(*real_.ReadFile(StrCat(root_, "/x/y/file")), "new");
  ASSERT_TRUE(env_->Rename("x/y/file", StrCat(root_, "/x/moved")).ok());
  EXPECT_EQ(*env_->ReadFile("x/moved"), "new");
  EXPECT_TRUE(env_->RemoveFile("x/moved").ok());
  EXPECT_TRUE(env_->RemoveDirectory("x/y/z/").ok());
  EXPECT_FALSE(env_->FileExists("x/y/z"));
  EXPECT_TRUE(env_->SyncDirectory("x").ok());
}

TEST_F(RootedEnvTest, NothingOutsideIsReached) {
  Link("../secret", "up");
  Link(StrCat(top_, "/secret"), "absolute");
  Link("..", "parent");
  Link("/proc/self/root", "magic");
  for (const std::string& path :
       {StrCat(top_, "/secret"), std::string("../secret"), std::string("inner/../../secret"),
        StrCat(root_, "/../secret"), std::string("parent/secret"), std::string("magic/etc/passwd"),
        std::string("/etc/passwd"), std::string("/"), StrCat(root_, "x/file"), top_}) {
    EXPECT_FALSE(env_->FileExists(path) && path != "/" && path != top_) << path;
    for (const Status& status : TryAll(path)) {
      EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << path << ": " << status;
      EXPECT_TRUE(IsOutsideFileRoot(status)) << path << ": " << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(StrCat("--file_root=", root_)));
    }
  }
  // The link itself may be removed, because it is inside the directory.
  for (const std::string path : {"up", "absolute"}) {
    EXPECT_TRUE(IsOutsideFileRoot(env_->ReadFile(path).status())) << path;
    EXPECT_TRUE(IsOutsideFileRoot(env_->OpenFile(path).status())) << path;
    EXPECT_TRUE(IsOutsideFileRoot(env_->NewWritableFile(path).status())) << path;
    EXPECT_TRUE(env_->RemoveFile(path).ok()) << path;
  }
  EXPECT_EQ(*real_.ReadFile(StrCat(top_, "/secret")), "secret");
  EXPECT_FALSE(real_.FileExists(StrCat(top_, "/a.txt")));
}

TEST_F(RootedEnvTest, LinksWithinTheDirectoryAreFollowed) {
  Link("inner/../a.txt", "alias");
  Link("inner", "folder");
  EXPECT_EQ(*env_->ReadFile("alias"), "a");
  EXPECT_TRUE(env_->WriteFileAtomically("folder/file", "x").ok());
  EXPECT_EQ(*env_->ReadFile("inner/file"), "x");
}

TEST_F(RootedEnvTest, ErrorsNameThePathThatWasGiven) {
  EXPECT_EQ(env_->ReadFile("none").status().message(),
            "cannot open 'none': No such file or directory");
  EXPECT_EQ(env_->ReadFile("none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(env_->ReadFile("inner").status().message(), "cannot open 'inner': Is a directory");
  char nine[9];
  EXPECT_EQ((*env_->OpenFile("a.txt"))->Read(0, 9, nine).message(),
            "cannot read 9 bytes at offset 0 of 'a.txt': it ends at 1");
  ASSERT_EQ(mkfifo(StrCat(root_, "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(env_->ReadFile("fifo").status().message(),
            "cannot open 'fifo': it is a FIFO, expected a regular file");
  EXPECT_FALSE(env_->NewWritableFile("fifo").ok());
}

TEST_F(RootedEnvTest, PatternsMatchWithinTheDirectory) {
  EXPECT_THAT(MatchFiles(*env_, StrCat(root_, "/*.txt")), ElementsAre(StrCat(root_, "/a.txt")));
  EXPECT_THAT(MatchFiles(*env_, "*.txt"), ElementsAre("a.txt"));
  EXPECT_THAT(MatchFiles(*env_, StrCat(top_, "/*")), ElementsAre());
  EXPECT_TRUE(CheckPattern(*env_, StrCat(root_, "/none*")).ok());
  EXPECT_TRUE(CheckPattern(*env_, "none*").ok());
  for (const std::string& pattern : {StrCat(top_, "/s*"), std::string("/etc/*"),
                                     std::string("../*"), std::string("/etc/passwd")}) {
    EXPECT_EQ(CheckPattern(*env_, pattern).code(), StatusCode::kPermissionDenied) << pattern;
    EXPECT_THAT(MatchFiles(*env_, pattern), ElementsAre()) << pattern;
  }
}

TEST_F(RootedEnvTest, TheRootMustBeADirectory) {
  for (const std::string& root : {StrCat(root_, "/none"), StrCat(root_, "/a.txt")}) {
    const Status status = RootedEnv::Create(real_, root).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(StrCat("--file_root: '", root, "'")));
  }
}

TEST_F(RootedEnvTest, TheRootMayBeGivenThroughALink) {
  Link("inner", "alias");
  CHECK_OK(real_.WriteFileAtomically(StrCat(root_, "/inner/f"), "f"));
  const auto env = *RootedEnv::Create(real_, StrCat(root_, "/alias/"));
  EXPECT_EQ(*env->ReadFile("f"), "f");
  EXPECT_EQ(*env->ReadFile(StrCat(root_, "/alias/f")), "f");
  EXPECT_EQ(*env->ReadFile(StrCat(root_, "/inner/f")), "f");
  EXPECT_TRUE(IsOutsideFileRoot(env->ReadFile(StrCat(root_, "/a.txt")).status()));
}

}  // namespace
}  // namespace penstock
