// SPDX-License-Identifier: Apache-2.0
//
// Owning pointers to OpenSSL's objects, and the text of its times.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace penstock {

template <auto free_it>
struct OpensslFree {
  template <class T>
  void operator()(T* object) const {
    free_it(object);
  }
};

using BioPtr = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using SslContextPtr = std::unique_ptr<SSL_CTX, OpensslFree<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, OpensslFree<SSL_free>>;
using X509Ptr = std::unique_ptr<X509, OpensslFree<X509_free>>;

// Returns "Nov  2 10:00:00 2030 GMT".
std::string TextOf(const ASN1_TIME& time);

}  // namespace penstock
