// SPDX-License-Identifier: Apache-2.0
//
// SecuritySettings: how a process authenticates itself, and which clients it admits. They are set
// by flags, or by environment variables (PENSTOCK_TLS_CA for --tls_ca). All code that opens or
// accepts connections uses Credentials (credentials.h), which are made from these settings.
#pragma once

#include <string>

#include "core/base/status.h"

namespace penstock {

struct SecuritySettings {
  // PEM files: the certificate chain and the key of this process, and the certificate authorities;
  // one of these must have signed the certificate of any other process. "": plaintext. A task needs
  // all three files, a client only the one of the authorities.
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
  // If true, this task requires a certificate of its clients, too (mutual TLS).
  bool tls_client_auth = false;
  // The name that the certificates of other processes must have, instead of the called
  // host.
  std::string tls_server_name;
  // A file of tokens, one per line. A task admits calls that carry any of these tokens; a process
  // sends the first one.
  std::string token_file;
  // The directory in which ops of a task may use files; "": all files that the process may
  // use.
  std::string file_root;

  bool operator==(const SecuritySettings&) const = default;
  bool tls() const { return !tls_cert.empty() || !tls_key.empty() || !tls_ca.empty(); }

  // Reads the environment variables. InvalidArgument names the variable.
  static StatusOr<SecuritySettings> FromEnvironment();
};

// Returns the settings of this process: the argument of SetProcessSecurity if it was
// called, else FromEnvironment's result. Thread-safe.
StatusOr<SecuritySettings> ProcessSecurity();
// Sets the settings of this process, for programs that have flags. Must be called
// before any connection is made.
void SetProcessSecurity(const SecuritySettings& settings);

// Returns "--tls_ca (PENSTOCK_TLS_CA)": the name of a setting in errors.
std::string NameOfSetting(string_view name);

}  // namespace penstock
