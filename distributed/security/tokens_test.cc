// SPDX-License-Identifier: Apache-2.0
#include "distributed/security/tokens.h"

#include "distributed/security/testing/test_authority.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kFirst[] = "0123456789abcdef", kSecond[] = "fedcba9876543210fedcba9876543210";

std::string ErrorOf(const std::string& contents) {
  const std::string path = TestAuthority().Write("token", contents);
  const Status status = Tokens::Read(path, "--token_file", Env::Real()).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << contents;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  return std::string(status.message());
}

TEST(TokensTest, EveryTokenOfTheFileIsAccepted) {
  const std::string path = TestAuthority().Write(
      "token", StrCat("# of the cluster\n\n", kFirst, "\n  ", kSecond, "\r\n"));
  const Tokens tokens = *Tokens::Read(path, "--token_file", Env::Real());
  EXPECT_EQ(tokens.first(), kFirst);
  EXPECT_TRUE(tokens.Contains(kFirst));
  EXPECT_TRUE(tokens.Contains(kSecond));
  for (const std::string wrong :
       {"", "0123456789abcdeF", "0123456789abcde", "0123456789abcdef0", "# of the cluster"}) {
    EXPECT_FALSE(tokens.Contains(wrong)) << wrong;
  }
  EXPECT_FALSE(Tokens().Contains(""));
}

TEST(TokensTest, MistakesNameTheLineAndNotTheToken) {
  EXPECT_THAT(ErrorOf("\nsecret\n"), HasSubstr("line 2 of"));
  EXPECT_THAT(ErrorOf("\nsecret\n"), Not(HasSubstr("secret")));
  EXPECT_THAT(ErrorOf("secret secret secret secret"), HasSubstr("has blanks"));
  EXPECT_THAT(ErrorOf("sécretsécretsécret"), HasSubstr("not ASCII"));
  EXPECT_THAT(ErrorOf("# none\n"), HasSubstr("there is no token in"));
  EXPECT_THAT(std::string(Tokens::Read("/none", "--token_file", Env::Real()).status().message()),
              HasSubstr("--token_file: cannot open '/none': No such file"));
}

TEST(TokensTest, OfHeader) {
  EXPECT_EQ(Tokens::OfHeader("Bearer abc"), "abc");
  EXPECT_EQ(Tokens::OfHeader("Basic dXNlcjphYmM6ZA=="), "abc:d");  // "user:abc:d"
  for (const char* const none : {"", "abc", "Basic ?", "Basic YWJj", "Digest abc"}) {
    EXPECT_EQ(Tokens::OfHeader(none), "") << none;  // "YWJj" is "abc", without a colon
  }
}

}  // namespace
}  // namespace penstock
