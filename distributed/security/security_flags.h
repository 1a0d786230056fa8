// SPDX-License-Identifier: Apache-2.0
//
// The flags of SecuritySettings. They override environment variables, and take effect for the
// whole process (ProcessSecurity) once parsed.
#pragma once

namespace CLI {
class App;
}

namespace penstock {

// Adds --tls_ca, --tls_cert, --tls_key, --tls_server_name and --token_file: for programs that
// are clients of a task.
void AddClientSecurityFlags(CLI::App& app);
// Also adds --tls_client_auth and --file_root: for programs that run a task.
void AddTaskSecurityFlags(CLI::App& app);

}  // namespace penstock
