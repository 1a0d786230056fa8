// SPDX-License-Identifier: Apache-2.0
//
// Runs the sample calls of every op with a GPU kernel on both the GPU and the CPU, and prints
// whether the results agree: a line per op and a summary. Exit status: 0 all agree; 1 some do not,
// or the GPU does not start; 2 a mistake in the arguments; 3 no GPU.
//
//   gpu_check [--device=CPU] [op...]
//
// --device=CPU compares the CPU with itself, to check the samples on a machine without a GPU.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/op/variable.h"
#include "core/runtime/device.h"
#include "tests/conformance/agreement.h"
#include "tests/conformance/samples.h"

namespace penstock {
namespace {

struct Counts {
  int calls = 0, agree = 0, not_compared = 0;
};

// Runs `copy`, to or from the device, waits until it has ended, and returns the copied tensor.
template <class Copy>
StatusOr<Tensor> Copied(Device& device, const Copy& copy) {
  Tensor to;
  std::promise<Status> ended;
  copy(&to, Done([&](Status status) { ended.set_value(std::move(status)); }));
  RETURN_IF_ERROR(ended.get_future().get());
  RETURN_IF_ERROR(device.Synchronize());
  return to;
}

OpRunner::Accelerator AcceleratorOf(Device& device) {
  return {.type = device.type(),
          .allocator = &device.allocator(),
          .stream = device.stream(),
          .handles = device.kernel_handles(),
          .to_device =
              [&](const Tensor& from) {
                return Copied(device, [&](Tensor* to, Done done) {
                  device.CopyFromHost(from, to, std::move(done));
                });
              },
          .from_device =
              [&](const Tensor& from) {
                return Copied(device, [&](Tensor* to, Done done) {
                  device.CopyToHost(from, to, std::move(done));
                });
              }};
}

std::vector<std::shared_ptr<Variable>> VariablesOf(const SampleCall& call) {
  std::vector<std::shared_ptr<Variable>> variables;
  for (const Tensor& input : call.Inputs()) {
    if (input.dtype() != DType::kResource) continue;
    auto variable = std::dynamic_pointer_cast<Variable>(input.scalar<ResourceHandle>().resource);
    if (variable != nullptr) variables.push_back(std::move(variable));
  }
  return variables;
}

// Sets the seeds of random ops, which otherwise give different numbers in each run.
void FixSeeds(SampleCall& call) {
  for (const AttrDef& attr : call.op->attrs) {
    if (attr.name == "seed" || attr.name == "seed2") call.attrs[attr.name] = int64_t{7};
  }
}

Status RunOnDevice(const SampleCall& call, const OpRunner::Accelerator& accelerator,
                   std::vector<Tensor>* outputs) {
  for (const auto& variable : VariablesOf(call)) {
    ASSIGN_OR_RETURN(const Tensor value, variable->Read());
    ASSIGN_OR_RETURN(Tensor copy, accelerator.to_device(value));
    RETURN_IF_ERROR(variable->Assign(std::move(copy), true, {}));
  }
  ASSIGN_OR_RETURN(*outputs, call.Run(call.Inputs(), accelerator));
  for (const auto& variable : VariablesOf(call)) {
    ASSIGN_OR_RETURN(const Tensor value, variable->Read());
    ASSIGN_OR_RETURN(Tensor copy, accelerator.from_device(value));
    outputs->push_back(std::move(copy));
  }
  return OkStatus();
}

Status RunOnCpu(const SampleCall& call, std::vector<Tensor>* outputs) {
  ASSIGN_OR_RETURN(*outputs, call.Run(call.Inputs()));
  for (const auto& variable : VariablesOf(call)) {
    ASSIGN_OR_RETURN(Tensor value, variable->Read());
    outputs->push_back(std::move(value));
  }
  return OkStatus();
}

// Runs `twin`, a copy of `call` with its own state, on the device. Returns "" if the results agree
// with `expected`, the results of `call` on the CPU; else the difference.
std::string Compare(const SampleCall& call, const SampleCall& twin, Device& device,
                    const std::vector<Tensor>& expected) {
  std::vector<Tensor> found;
  const Status status = RunOnDevice(twin, AcceleratorOf(device), &found);
  if (!status.ok()) return std::string(status.message());
  if (found.size() != expected.size()) return "another number of outputs";
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string difference = Disagreement(expected[i], found[i]);
    if (!difference.empty()) return StrCat("output ", i, " ", difference);
  }
  return "";
}

// Checks one op. Returns false if the device can no longer be used, because after an illegal access
// in a kernel every later call fails.
bool CheckOp(const OpDef& op, Device& device, Counts* total) {
  StatusOr<std::vector<SampleCall>> calls = SamplesOf(op), twins = SamplesOf(op);
  if (!calls.ok()) {
    std::printf("%-40s no samples: %s\n", op.name.c_str(), calls.status().message().data());
    ++total->not_compared;
    return true;
  }
  Counts counts;
  std::string troubles;
  for (size_t i = 0; i < calls->size(); ++i) {
    SampleCall &call = (*calls)[i], &twin = (*twins)[i];
    FixSeeds(call);
    FixSeeds(twin);
    if (!Registry::Global().FindKernel(op.name, device.type(), call.attrs).ok()) continue;
    std::vector<Tensor> expected;
    const Status on_cpu = RunOnCpu(call, &expected);
    if (!on_cpu.ok()) {
      ++counts.not_compared;
      StrAppend(&troubles, "\n  ", call.label, ": not compared; the CPU says: ", on_cpu.message());
      continue;
    }
    ++counts.calls;
    const std::string trouble = Compare(call, twin, device, expected);
    counts.agree += trouble.empty();
    if (!trouble.empty()) StrAppend(&troubles, "\n  ", call.label, ": ", trouble);
  }
  if (counts.calls + counts.not_compared == 0) return true;
  std::printf("%-40s %3d of %3d calls agree%s\n", op.name.c_str(), counts.agree, counts.calls,
              troubles.c_str());
  std::fflush(stdout);
  total->calls += counts.calls;
  total->agree += counts.agree;
  total->not_compared += counts.not_compared;
  return device.Synchronize().ok();
}

struct Options {
  std::string device = "GPU";
  std::string after;  // the op after which to continue, set if the device had become unusable
  Counts counts;
  std::set<std::string> ops;  // empty: all
};

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--device=CPU") {
      options.device = "CPU";
    } else if (arg.rfind("--after=", 0) == 0) {
      options.after = arg.substr(8);
    } else if (std::sscanf(arg.c_str(), "--counts=%d,%d,%d", &options.counts.calls,
                           &options.counts.agree, &options.counts.not_compared) == 3) {
    } else if (arg[0] == '-') {
      std::fprintf(stderr, "usage: gpu_check [--device=CPU] [op...]\n");
      std::exit(arg == "--help" ? 0 : 2);
    } else {
      options.ops.insert(arg);
    }
  }
  return options;
}

// Executes this program again, with a new CUDA context, from the op after `op`.
[[noreturn]] void GoOnAfter(const OpDef& op, const Counts& counts, int argc, char** argv) {
  std::printf("  the device does not work any more; starting it again\n");
  std::fflush(stdout);
  const std::string after = StrCat("--after=", op.name);
  const std::string so_far =
      StrCat("--counts=", counts.calls, ",", counts.agree, ",", counts.not_compared);
  std::vector<const char*> arguments(argv, argv + argc);
  arguments.push_back(after.c_str());
  arguments.push_back(so_far.c_str());
  arguments.push_back(nullptr);
  execv("/proc/self/exe", const_cast<char* const*>(arguments.data()));
  std::perror("gpu_check: cannot start again");
  std::exit(1);
}

int Main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  StatusOr<DeviceName> task = DeviceName::Parse("/job:localhost/task:0");
  CHECK_OK(task.status());
  auto devices = MakeDevices({.task = *task});
  if (!devices.ok()) {
    std::printf("The GPU does not start: %s\n", devices.status().message().data());
    return 1;
  }
  Device* device = nullptr;
  for (auto& one : *devices) {
    if (device == nullptr && one->type() == options.device) device = one.get();
  }
  if (device == nullptr) {
    std::printf(
        "No GPU on this machine (or a build without --config=cuda): nothing was checked.\n");
    return 3;
  }
  std::printf("%s: %s\n", device->name().c_str(), device->info().description.c_str());
  Counts counts = options.counts;
  for (const OpDef* op : Registry::Global().ops()) {
    if (op->name <= options.after || op->internal()) continue;  // these ops run between devices
    if (!options.ops.empty() && options.ops.count(op->name) == 0) continue;
    if (!CheckOp(*op, *device, &counts)) GoOnAfter(*op, counts, argc, argv);
  }
  if (counts.not_compared > 0)
    std::printf("%d calls could not be compared.\n", counts.not_compared);
  std::printf("%d of %d calls agree\n", counts.agree, counts.calls);
  return counts.agree == counts.calls && counts.calls > 0 ? 0 : 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Main(argc, argv); }
