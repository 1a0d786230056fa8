// SPDX-License-Identifier: Apache-2.0
//
// SecuritySettings: how a process proves who it is, and whom it lets in. They come from flags, or
// from the environment variables of the same names (--tls_ca: PENSTOCK_TLS_CA). Everything that
// opens or takes connections gets them as Credentials (credentials.h).
#pragma once

#include <string>

#include "core/base/status.h"

namespace penstock {

struct SecuritySettings {
  // PEM files: the certificates and the key of this process, and the authorities that certificates
  // of others must come from. "": plaintext. Tasks need all three, clients the authorities.
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
  // Clients of this task need a certificate, too (mutual TLS).
  bool tls_client_auth = false;
  // The name that the certificates of others must have, instead of the host that is called.
  std::string tls_server_name;
  // A file of tokens, one per line. A task lets in calls that bring one of them; a process sends
  // the first.
  std::string token_file;
  // The directory that ops may use files in; "": all files that the process may use. Of tasks.
  std::string file_root;

  bool operator==(const SecuritySettings&) const = default;
  bool tls() const { return !tls_cert.empty() || !tls_key.empty() || !tls_ca.empty(); }

  // Reads the environment's variables. InvalidArgument names the variable.
  static StatusOr<SecuritySettings> FromEnvironment();
};

// Returns the settings of this process: those that SetProcessSecurity was called with, else
// FromEnvironment's. Thread-safe.
StatusOr<SecuritySettings> ProcessSecurity();
// Sets them, for programs that have flags. Must be called before anything connects.
void SetProcessSecurity(const SecuritySettings& settings);

// "--tls_ca (PENSTOCK_TLS_CA)": what errors call a setting.
std::string NameOfSetting(string_view name);

}  // namespace penstock
