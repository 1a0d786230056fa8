// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/stubs/common.h>
#include <grpcpp/version_info.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "core/base/version.h"
#include "core/op/registry.h"
#include "tools/penstock/commands.h"

namespace penstock {
namespace {

std::string Versions() {
#if defined(__clang__)
  const char* compiler = "";  // __VERSION__ contains the compiler's name
#else
  const char* compiler = "g++ ";
#endif
#if defined(PENSTOCK_CUDA)
  const char* cuda = "with CUDA";
#else
  const char* cuda = "without CUDA";
#endif
  const std::string protobuf = google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
  return StrCat("penstock ", kVersion, "\nwrites GraphDefs of producer ", kGraphDefProducer,
                " (TensorFlow 1.0 and later read them)\nbuilt ", cuda, ", with ",
                Registry::Global().ops().size(), " ops, ", compiler, __VERSION__, ", gRPC ",
                GRPC_CPP_VERSION_STRING, ", Protobuf ", protobuf);
}

}  // namespace

void AddVersionCommand(CLI::App& app, int* exit_code) {
  app.set_version_flag("--version", Versions, "Print the version, compiler and libraries");
  CLI::App* version = app.add_subcommand("version", "Print the version, compiler and libraries");
  version->callback([] { std::printf("%s\n", Versions().c_str()); });
}

}  // namespace penstock
