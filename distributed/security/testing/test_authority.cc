// SPDX-License-Identifier: Apache-2.0
#include "distributed/security/testing/test_authority.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cstdlib>

#include "core/base/check.h"
#include "core/base/env.h"

namespace penstock {
namespace {

X509Ptr NewCertificate(EVP_PKEY* key, const std::string& name, int valid_from_s,
                       int valid_until_s) {
  X509Ptr certificate(X509_new());
  X509* const x = certificate.get();
  X509_set_version(x, 2);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), Env::Real().RandomU64() >> 1);
  X509_gmtime_adj(X509_getm_notBefore(x), valid_from_s);
  X509_gmtime_adj(X509_getm_notAfter(x), valid_until_s);
  X509_set_pubkey(x, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return certificate;
}

void AddExtension(X509* certificate, int kind, const std::string& value) {
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
  CHECK(extension != nullptr, "an extension of a certificate");
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

std::string TextOf(const BioPtr& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string PemOf(X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate);
  return TextOf(bio);
}

std::string PemOf(EVP_PKEY* key) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return TextOf(bio);
}

}  // namespace

TestAuthority::TestAuthority(const std::string& name) : key_(EVP_EC_gen("P-256")) {
  const char* const base = std::getenv("TEST_TMPDIR");
  folder_ = StrCat(base == nullptr ? "/tmp" : base, "/authorityXXXXXX");
  CHECK(mkdtemp(folder_.data()) != nullptr, "no folder for the test");
  certificate_ = NewCertificate(key_.get(), name, -60, 3600);
  X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
  AddExtension(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  CHECK(X509_sign(certificate_.get(), key_.get(), EVP_sha256()) > 0);
  Write("ca.pem", PemOf(certificate_.get()));
}

SecuritySettings TestAuthority::Issue(const Wanted& wanted) const {
  const KeyPtr key(EVP_EC_gen("P-256"));
  const X509Ptr issued =
      NewCertificate(key.get(), "task", wanted.valid_from_s, wanted.valid_until_s);
  X509_set_issuer_name(issued.get(), X509_get_subject_name(certificate_.get()));
  AddExtension(issued.get(), NID_subject_alt_name, wanted.names);
  CHECK(X509_sign(issued.get(), key_.get(), EVP_sha256()) > 0);
  const std::string name = StrCat(Env::Real().RandomU64());
  return {.tls_cert = Write(name + ".pem", PemOf(issued.get())),
          .tls_key = Write(name + ".key", PemOf(key.get())),
          .tls_ca = ca()};
}

std::string TestAuthority::Write(const std::string& name, const std::string& contents) const {
  const std::string path = StrCat(folder_, "/", name);
  CHECK_OK(Env::Real().WriteFileAtomically(path, contents));
  CHECK(chmod(path.c_str(), 0600) == 0);
  return path;
}

}  // namespace penstock
