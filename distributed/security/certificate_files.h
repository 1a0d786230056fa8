// SPDX-License-Identifier: Apache-2.0
//
// Checks the files of --tls_cert, --tls_key and --tls_ca before they are used: gRPC would only
// log that it cannot use them, and then close all connections. WarnIfReadable: warns of secret
// files that other users may read.
#pragma once

#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/status.h"
#include "distributed/security/security_settings.h"

namespace penstock {

// Checks the files that are set. InvalidArgument names the setting, the file and the mistake: the
// file cannot be read, is not PEM, has expired, or the key does not belong to the certificate. A
// key that other users may read is accepted, with an entry in `warnings`.
Status CheckCertificateFiles(const SecuritySettings& settings, Env& env,
                             std::vector<std::string>* warnings);

// Adds a warning if users other than its owner may read the file.
void WarnIfReadable(const std::string& path, string_view setting,
                    std::vector<std::string>* warnings);

}  // namespace penstock
