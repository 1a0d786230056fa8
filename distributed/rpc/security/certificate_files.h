// SPDX-License-Identifier: Apache-2.0
//
// Looks at the files of --tls_cert, --tls_key and --tls_ca before they are used: gRPC would only
// log that it cannot use them, and clients would see connections that close.
#pragma once

#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"
#include "distributed/rpc/security/security_settings.h"

namespace penstock {

// InvalidArgument names the setting, the file and what is wrong: it cannot be read, is no PEM, has
// expired, or the key is not the certificate's. What works but should not be is added to
// `warnings`: a key that other users may read. Files that are not given are not looked at.
Status CheckCertificateFiles(const SecuritySettings& settings, Env& env,
                             std::vector<std::string>* warnings);

// Adds a warning if users other than its owner may read the file.
void WarnIfReadable(const std::string& path, string_view setting,
                    std::vector<std::string>* warnings);

}  // namespace penstock
