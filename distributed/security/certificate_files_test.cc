// SPDX-License-Identifier: Apache-2.0
#include "distributed/security/certificate_files.h"

#include <sys/stat.h>

#include "core/base/env.h"
#include "distributed/security/testing/test_authority.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class CertificateFilesTest : public testing::Test {
 protected:
  // Returns the error's text; "" if the files are good.
  std::string Check(const SecuritySettings& settings) {
    warnings_.clear();
    const Status status = CheckCertificateFiles(settings, Env::Real(), &warnings_);
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  const TestAuthority authority_;
  std::vector<std::string> warnings_;
};

TEST_F(CertificateFilesTest, GoodFilesPass) {
  EXPECT_EQ(Check({}), "");
  EXPECT_EQ(Check({.tls_ca = authority_.ca()}), "");
  EXPECT_EQ(Check(authority_.Issue()), "");
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CertificateFilesTest, FilesThatAreNotThereAreNamedWithTheirSetting) {
  SecuritySettings settings = authority_.Issue();
  settings.tls_key = "/no/such/key";
  EXPECT_THAT(Check(settings),
              AllOf(StartsWith("--tls_key (PENSTOCK_TLS_KEY): "), HasSubstr("/no/such/key")));
  EXPECT_THAT(Check({.tls_ca = "/no/such/ca"}), StartsWith("--tls_ca (PENSTOCK_TLS_CA): "));
}

TEST_F(CertificateFilesTest, FilesThatAreNoPemAreNamed) {
  const std::string text = authority_.Write("text", "no PEM");
  SecuritySettings settings = authority_.Issue();
  EXPECT_THAT(Check({.tls_ca = text}),
              HasSubstr("text' holds no certificate in PEM form (BEGIN CERTIFICATE)"));
  settings.tls_key = text;
  EXPECT_THAT(Check(settings), HasSubstr("text' holds no private key in PEM form"));
  settings = authority_.Issue();
  settings.tls_cert = settings.tls_key;
  EXPECT_THAT(Check(settings), AllOf(StartsWith("--tls_cert"), HasSubstr("holds no certificate")));
}

TEST_F(CertificateFilesTest, AKeyMustBelongToItsCertificate) {
  SecuritySettings settings = authority_.Issue();
  settings.tls_key = authority_.Issue().tls_key;
  EXPECT_THAT(Check(settings), AllOf(StartsWith("--tls_key"), HasSubstr("is not the key of the "
                                                                        "certificate in '")));
}

TEST_F(CertificateFilesTest, DatesAreChecked) {
  EXPECT_THAT(Check(authority_.Issue({.valid_from_s = -60, .valid_until_s = -30})),
              HasSubstr("; renew the certificate"));
  EXPECT_THAT(Check(authority_.Issue({.valid_from_s = 600})), HasSubstr("is valid only from"));
}

TEST_F(CertificateFilesTest, AKeyThatOthersMayReadIsAWarning) {
  const SecuritySettings settings = authority_.Issue();
  ASSERT_EQ(chmod(settings.tls_key.c_str(), 0640), 0);
  EXPECT_EQ(Check(settings), "");
  EXPECT_THAT(warnings_, ElementsAre(AllOf(StartsWith("--tls_key"), HasSubstr("(mode 640)"))));
  WarnIfReadable("/no/such/file", "token_file", &warnings_);
  EXPECT_EQ(warnings_.size(), 1u);
}

}  // namespace
}  // namespace penstock
