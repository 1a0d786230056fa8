// SPDX-License-Identifier: Apache-2.0
#include "distributed/security/certificate_files.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "distributed/security/openssl.h"

namespace penstock {
namespace {

Status Wrong(string_view setting, const std::string& path, const std::string& what) {
  ERR_clear_error();
  return InvalidArgument(NameOfSetting(setting), ": '", path, "' ", what);
}

StatusOr<std::string> ReadPem(string_view setting, const std::string& path, Env& env) {
  auto contents = env.ReadFile(path);
  if (contents.ok()) return contents;
  return InvalidArgument(NameOfSetting(setting), ": ", contents.status().message());
}

// Returns the first certificate in the file.
StatusOr<X509Ptr> ReadCertificate(string_view setting, const std::string& path, Env& env) {
  ASSIGN_OR_RETURN(const std::string pem, ReadPem(setting, path, env));
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  X509Ptr certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate != nullptr) return certificate;
  return Wrong(setting, path, "holds no certificate in PEM form (BEGIN CERTIFICATE)");
}

Status CheckDates(string_view setting, const std::string& path, const X509& certificate) {
  const ASN1_TIME* const end = X509_get0_notAfter(&certificate);
  const ASN1_TIME* const begin = X509_get0_notBefore(&certificate);
  if (X509_cmp_current_time(end) < 0) {
    return Wrong(setting, path, StrCat("expired on ", TextOf(*end), "; renew the certificate"));
  }
  if (X509_cmp_current_time(begin) <= 0) return OkStatus();
  return Wrong(setting, path,
               StrCat("is valid only from ", TextOf(*begin),
                      " on; is the clock of "
                      "this host right?"));
}

// Refuses a key with a passphrase, because a server has no terminal at which to ask for it.
int NoPassphrase(char*, int, int, void*) { return -1; }

Status CheckKey(const SecuritySettings& settings, const X509& certificate, Env& env) {
  ASSIGN_OR_RETURN(const std::string pem, ReadPem("tls_key", settings.tls_key, env));
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  if (key == nullptr) {
    return Wrong("tls_key", settings.tls_key,
                 "holds no private key in PEM form without a passphrase");
  }
  if (X509_check_private_key(&certificate, key.get()) == 1) return OkStatus();
  return Wrong("tls_key", settings.tls_key,
               StrCat("is not the key of the certificate in '", settings.tls_cert, "'"));
}

}  // namespace

std::string TextOf(const ASN1_TIME& time) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(bio.get(), &time);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

void WarnIfReadable(const std::string& path, string_view setting,
                    std::vector<std::string>* warnings) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || (info.st_mode & (S_IRGRP | S_IROTH)) == 0) return;
  warnings->push_back(absl::StrFormat("%s: other users may read '%s' (mode %03o); `chmod 600` it",
                                      NameOfSetting(setting), path, info.st_mode & 0777));
}

Status CheckCertificateFiles(const SecuritySettings& settings, Env& env,
                             std::vector<std::string>* warnings) {
  if (!settings.tls_ca.empty()) {
    ASSIGN_OR_RETURN(const X509Ptr ca, ReadCertificate("tls_ca", settings.tls_ca, env));
    RETURN_IF_ERROR(CheckDates("tls_ca", settings.tls_ca, *ca));
  }
  if (settings.tls_cert.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const X509Ptr own, ReadCertificate("tls_cert", settings.tls_cert, env));
  RETURN_IF_ERROR(CheckDates("tls_cert", settings.tls_cert, *own));
  RETURN_IF_ERROR(CheckKey(settings, *own, env));
  WarnIfReadable(settings.tls_key, "tls_key", warnings);
  return OkStatus();
}

}  // namespace penstock
