// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/compile_flags.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "core/base/env.h"
#include "core/base/scheduler.h"

namespace penstock {
namespace {

StatusOr<std::vector<TensorName>> Parse(const std::vector<std::string>& texts) {
  std::vector<TensorName> names;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(TensorName name, TensorName::Parse(text));
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

void CompileFlags::AddTo(CLI::App& command) {
  command.add_option("--feed", feeds, "Tensors that are fed, when compiling")->delimiter(',');
  command.add_option("--fetch", fetches, "Tensors to fetch, when compiling")->delimiter(',');
  command.add_option("--target", targets, "Nodes to run, when compiling")->delimiter(',');
  command.add_option("--devices", devices, "Full names of the devices to compile for")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--disable_passes", disabled_passes, "Passes to leave out: fold, ...")
      ->delimiter(',');
  command.add_flag("--bfloat16_transfers", bfloat16_transfers,
                   "Round floats to bfloat16 between tasks, as the session's option does");
}

StatusOr<CompileOptions> CompileFlags::Options(const std::vector<DeviceInfo>& devices) const {
  CompileOptions options{.targets = targets,
                         .disabled_passes = disabled_passes,
                         .bfloat16_transfers = bfloat16_transfers,
                         .env = &Env::Real(),
                         .threads = &Scheduler::Real(),
                         .client_device = devices.front().name};
  ASSIGN_OR_RETURN(options.feeds, Parse(feeds));
  ASSIGN_OR_RETURN(options.fetches, Parse(fetches));
  return options;
}

StatusOr<std::vector<DeviceInfo>> CompileFlags::Devices() const {
  std::vector<DeviceInfo> infos;
  for (const std::string& text : devices) {
    ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(text));
    if (!name.full()) return InvalidArgument("--devices: '", text, "' is not a full device name");
    const DeviceRates rates = DefaultRates(*name.type);
    infos.push_back({.name = std::move(name), .incarnation = 1, .rates = rates});
  }
  return infos;
}

}  // namespace penstock
