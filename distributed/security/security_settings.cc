// SPDX-License-Identifier: Apache-2.0
#include "distributed/security/security_settings.h"

#include <cstdlib>
#include <optional>

#include "absl/strings/ascii.h"
#include "core/base/mutex.h"

namespace penstock {
namespace {

std::string VariableOf(string_view name) {
  return StrCat("PENSTOCK_", absl::AsciiStrToUpper(name));
}

std::string Read(string_view name) {
  const char* const value = std::getenv(VariableOf(name).c_str());
  return value == nullptr ? "" : value;
}

struct Chosen {
  Mutex mu;
  std::optional<SecuritySettings> settings ABSL_GUARDED_BY(mu);
};
Chosen& ChosenSettings() {
  static Chosen& chosen = *new Chosen;
  return chosen;
}

}  // namespace

std::string NameOfSetting(string_view name) {
  return StrCat("--", name, " (", VariableOf(name), ")");
}

StatusOr<SecuritySettings> SecuritySettings::FromEnvironment() {
  SecuritySettings settings{.tls_cert = Read("tls_cert"),
                            .tls_key = Read("tls_key"),
                            .tls_ca = Read("tls_ca"),
                            .tls_server_name = Read("tls_server_name"),
                            .token_file = Read("token_file"),
                            .file_root = Read("file_root")};
  const std::string wanted = absl::AsciiStrToLower(Read("tls_client_auth"));
  settings.tls_client_auth = wanted == "1" || wanted == "true";
  if (settings.tls_client_auth || wanted.empty() || wanted == "0" || wanted == "false") {
    return settings;
  }
  return InvalidArgument(VariableOf("tls_client_auth"), ": '", wanted,
                         "' is neither 1 (true) nor 0 (false)");
}

StatusOr<SecuritySettings> ProcessSecurity() {
  Chosen& chosen = ChosenSettings();
  MutexLock lock(chosen.mu);
  if (chosen.settings.has_value()) return *chosen.settings;
  return SecuritySettings::FromEnvironment();
}

void SetProcessSecurity(const SecuritySettings& settings) {
  Chosen& chosen = ChosenSettings();
  MutexLock lock(chosen.mu);
  chosen.settings = settings;
}

}  // namespace penstock
