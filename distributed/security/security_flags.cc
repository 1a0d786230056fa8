// SPDX-License-Identifier: Apache-2.0
#include "distributed/security/security_flags.h"

#include <CLI/CLI.hpp>
#include <string>

#include "distributed/security/security_settings.h"

namespace penstock {
namespace {

template <class Value>
void Set(Value SecuritySettings::*field, const Value& value) {
  StatusOr<SecuritySettings> settings = ProcessSecurity();
  if (!settings.ok()) throw CLI::ValidationError(std::string(settings.status().message()));
  (*settings).*field = value;
  SetProcessSecurity(*settings);
}

void AddFlag(CLI::App& app, const char* name, std::string SecuritySettings::*field,
             const char* type, const char* description) {
  app.add_option_function<std::string>(
         name, [field](const std::string& value) { Set(field, value); }, description)
      ->type_name(type);
}

}  // namespace

void AddClientSecurityFlags(CLI::App& app) {
  AddFlag(app, "--tls_ca", &SecuritySettings::tls_ca, "PEM",
          "Use TLS: the certificates of the authorities that have signed the tasks' certificates "
          "(PENSTOCK_TLS_CA)");
  AddFlag(app, "--tls_cert", &SecuritySettings::tls_cert, "PEM",
          "This process's certificate (PENSTOCK_TLS_CERT)");
  AddFlag(app, "--tls_key", &SecuritySettings::tls_key, "PEM",
          "The key of --tls_cert (PENSTOCK_TLS_KEY)");
  AddFlag(app, "--tls_server_name", &SecuritySettings::tls_server_name, "NAME",
          "The name that the tasks' certificates must have, instead of the called host "
          "(PENSTOCK_TLS_SERVER_NAME)");
  AddFlag(app, "--token_file", &SecuritySettings::token_file, "FILE",
          "The cluster's token, which each call to a task must carry (PENSTOCK_TOKEN_FILE)");
}

void AddTaskSecurityFlags(CLI::App& app) {
  AddClientSecurityFlags(app);
  app.add_flag_function(
      "--tls_client_auth",
      // CLI11 counts --tls_client_auth=false as -1; it has to override the environment variable.
      [](int64_t count) { Set(&SecuritySettings::tls_client_auth, count > 0); },
      "Clients and other tasks need a certificate of --tls_ca, too: mutual TLS "
      "(PENSTOCK_TLS_CLIENT_AUTH=1)");
  AddFlag(app, "--file_root", &SecuritySettings::file_root, "DIR",
          "Ops may use files in this directory alone; relative paths start there "
          "(PENSTOCK_FILE_ROOT)");
}

}  // namespace penstock
