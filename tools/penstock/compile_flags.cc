// SPDX-License-Identifier: Apache-2.0
#include "tools/penstock/compile_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "distributed/calibration/calibration_file.h"

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

// Parses "x:0=128x784", a feed and its dimensions, and stores the feed's shape in `options`. No
// dimensions mean a scalar; ? is an unknown dimension.
Status SetFeedShape(const std::string& text, CompileOptions* options) {
  const size_t equals = text.rfind('=');
  const auto wrong = [&](string_view why) {
    return InvalidArgument("--feed_shape: '", text, "' ", why, ", expected FEED=64x28x28");
  };
  if (equals == std::string::npos) return wrong("has no '='");
  ASSIGN_OR_RETURN(const TensorName name, TensorName::Parse(text.substr(0, equals)));
  const auto feed = std::find(options->feeds.begin(), options->feeds.end(), name);
  if (feed == options->feeds.end()) return wrong("is of a tensor that --feed does not name");
  std::vector<int64_t> dims;
  for (const string_view dim : absl::StrSplit(text.substr(equals + 1), 'x', absl::SkipEmpty())) {
    int64_t size = -1;
    if (dim != "?" && (!absl::SimpleAtoi(dim, &size) || size < 0)) return wrong("is no shape");
    dims.push_back(size);
  }
  options->feed_shapes.resize(options->feeds.size());
  ASSIGN_OR_RETURN(options->feed_shapes[feed - options->feeds.begin()], PartialShape::Make(dims));
  return OkStatus();
}

}  // namespace

void CompileFlags::AddTo(CLI::App& command) {
  AddStepTo(command);
  command.add_option("--devices", devices, "Full names of the devices to compile for")
      ->delimiter(',')
      ->capture_default_str();
}

void CompileFlags::AddStepTo(CLI::App& command) {
  command.add_option("--feed", feeds, "The tensors that are fed")->delimiter(',');
  command
      .add_option("--feed_shape", feed_shapes,
                  "The shape of a feed for estimates: x:0=128x784; unknown dimensions count as 64")
      ->delimiter(',');
  command.add_option("--fetch", fetches, "The tensors to fetch")->delimiter(',');
  command.add_option("--target", targets, "The nodes to run")->delimiter(',');
  command.add_option("--disable_passes", disabled_passes, "Passes to leave out: fold, ...")
      ->delimiter(',');
  command.add_flag("--bfloat16_transfers", bfloat16_transfers,
                   "Round floats to bfloat16 between tasks, as the session's option does");
  command
      .add_option("--memory_limit", memory_limit,
                  "Change the step until its tensors fit into this many bytes (64m, 8g) on each "
                  "device, as the session's option does")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  command.add_option("--calibration_file", calibration_file,
                     "The file with this machine's measured CPU rates, for estimates. Default: the "
                     "file that `penstock server` has written on this machine, if there is one, "
                     "else typical rates; none: typical rates");
}

StatusOr<CompileOptions> CompileFlags::Options(const std::vector<DeviceInfo>& devices) const {
  CompileOptions options{.targets = targets,
                         .disabled_passes = disabled_passes,
                         .bfloat16_transfers = bfloat16_transfers,
                         .memory_limit = memory_limit,
                         .env = &Env::Real(),
                         .threads = &Scheduler::Real(),
                         .client_device = devices.front().name};
  ASSIGN_OR_RETURN(options.feeds, Parse(feeds));
  ASSIGN_OR_RETURN(options.fetches, Parse(fetches));
  for (const std::string& shape : feed_shapes) RETURN_IF_ERROR(SetFeedShape(shape, &options));
  return options;
}

StatusOr<RatesOfCpus> CompileFlags::ReadCpuRates() const {
  const RatesOfCpus typical = {DefaultRates("CPU"), "typical"};
  if (calibration_file == "none") return typical;
  const std::string path = calibration_file.value_or(DefaultCalibrationFile());
  const auto calibration = ReadCalibration(Env::Real(), path, MachineIdentity(Env::Real()));
  if (calibration.ok()) {
    return RatesOfCpus{calibration->cpu, StrCat("measured on this machine, from ", path)};
  }
  if (calibration_file.has_value()) return Annotate(calibration.status(), "--calibration_file");
  return typical;
}

Status CompileFlags::PrintCpuRates(const std::string& costs) const {
  ASSIGN_OR_RETURN(const RatesOfCpus cpu, ReadCpuRates());
  std::printf("rates of CPUs: %s\n", costs.empty() ? cpu.origin.c_str() : "of --costs");
  return OkStatus();
}

StatusOr<std::vector<DeviceInfo>> CompileFlags::Devices() const {
  ASSIGN_OR_RETURN(const RatesOfCpus cpu, ReadCpuRates());
  std::vector<DeviceInfo> infos;
  for (const std::string& text : devices) {
    ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(text));
    if (!name.full()) return InvalidArgument("--devices: '", text, "' is not a full device name");
    const DeviceRates rates = name.type == "CPU" ? cpu.rates : DefaultRates(*name.type);
    infos.push_back({.name = std::move(name), .incarnation = 1, .rates = rates});
  }
  return infos;
}

}  // namespace penstock
