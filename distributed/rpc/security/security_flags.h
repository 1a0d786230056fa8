// SPDX-License-Identifier: Apache-2.0
//
// The flags of SecuritySettings. They go before the environment, and hold for the whole process
// (ProcessSecurity) from the moment they are parsed on.
#pragma once

namespace CLI {
class App;
}

namespace penstock {

// --tls_ca, --tls_cert, --tls_key, --tls_server_name and --token_file: for programs that ask a
// task.
void AddClientSecurityFlags(CLI::App& app);
// Those, --tls_client_auth and --file_root: for programs that are a task.
void AddTaskSecurityFlags(CLI::App& app);

}  // namespace penstock
