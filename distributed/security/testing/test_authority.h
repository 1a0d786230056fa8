// SPDX-License-Identifier: Apache-2.0
//
// TestAuthority: for tests, an authority that signs certificates. All files are in a new
// folder.
#pragma once

#include <string>

#include "distributed/security/openssl.h"
#include "distributed/security/security_settings.h"

namespace penstock {

class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name = "test authority");

  // Returns the PEM file of the authority's certificate.
  std::string ca() const { return folder_ + "/ca.pem"; }
  struct Wanted {
    std::string names = "DNS:localhost,IP:127.0.0.1";  // subjectAltName
    int valid_from_s = -60;                            // validity, in seconds from now
    int valid_until_s = 3600;
  };
  // Returns settings with a new certificate and key, signed by this authority.
  SecuritySettings Issue(const Wanted& wanted) const;
  SecuritySettings Issue() const { return Issue(Wanted{}); }
  // Writes a file in the folder, and returns its path.
  std::string Write(const std::string& name, const std::string& contents) const;

 private:
  KeyPtr key_;
  X509Ptr certificate_;
  std::string folder_;
};

}  // namespace penstock
