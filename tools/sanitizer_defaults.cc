// SPDX-License-Identifier: Apache-2.0
//
// Suppressions built into every test and binary, so that --config=tsan needs no separate file.
// Debian's libraries are not instrumented: TSan does not see their locks, and so reports false
// races on the data that they protect.

// The sanitizer runtime calls the function of this name.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_suppressions() {
  return "race:libgrpc.so\n"
         "race:libgrpc++.so\n"
         "race:libgpr.so\n"
         "race:libprotobuf.so\n"
         "race:libabsl_\n"
         "race:libcrypto.so\n"
         "race:grpc::\n"
         "race:google::protobuf\n";
}
