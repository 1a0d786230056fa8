// SPDX-License-Identifier: Apache-2.0
//
// Loads the op library of cube_root_op.cc and trains with its op:
//
//   cube_root ./libcube_root_op.so [grpc://host:port]
//
// Finds the x whose cube root is 2, in this process or on a cluster. The cluster's tasks must have
// been started with --load=libcube_root_op.so.
#include <cstdio>
#include <string>

#include "client/ops/ops.h"
#include "client/optimizers.h"
#include "client/program.h"
#include "client/session.h"
#include "core/op/load_library.h"

using namespace penstock;          // NOLINT
using namespace penstock::client;  // NOLINT

namespace {

Status Train(const std::string& library, const std::string& target) {
  // load before building the program that uses its ops
  RETURN_IF_ERROR(LoadLibrary(library).status());
  Program program;
  const Variable x(program, "x", Constant(program, Tensor::Scalar<float>(1)));
  const Output loss = ops::Square(Call("CubeRoot", {x}) - 2.0);
  const Output train = GradientDescent(5).Minimize(program, loss);

  ASSIGN_OR_RETURN(const auto session, Session::New(program, target));
  RETURN_IF_ERROR(session->Execute(program.Initialize(program.globals())));
  for (int i = 0; i < 100; ++i) RETURN_IF_ERROR(session->Execute(train));
  ASSIGN_OR_RETURN(const Tensor found, session->Fetch(x));
  std::printf("x = %.3f\n", found.scalar<float>());
  return OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "Usage: cube_root LIBRARY [grpc://HOST:PORT]\n");
    return 2;
  }
  const Status status = Train(argv[1], argc > 2 ? argv[2] : "");
  if (status.ok()) return 0;
  std::fprintf(stderr, "cube_root: %s\n", std::string(status.message()).c_str());
  return 1;
}
