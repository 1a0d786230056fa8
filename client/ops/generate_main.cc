// SPDX-License-Identifier: Apache-2.0
//
// generate_ops HEADER SOURCE INCLUDE: writes the functions of all ops that are linked into it. The
// build runs it.
#include <cstdio>
#include <string>

#include "client/ops/generate.h"
#include "core/base/env.h"

int main(int argc, char** argv) {
  using penstock::Env;
  constexpr int kArguments = 4;
  if (argc != kArguments) {
    fprintf(stderr, "usage: %s HEADER SOURCE INCLUDE\n", argv[0]);
    return 2;
  }
  const auto ops = penstock::client::GenerateOps(penstock::Registry::Global(), argv[3]);
  for (const auto& [path, text] : {std::pair{argv[1], ops.header}, {argv[2], ops.source}}) {
    const penstock::Status status = Env::Real().WriteFileAtomically(path, text);
    if (status.ok()) continue;
    fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
