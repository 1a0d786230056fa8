// SPDX-License-Identifier: Apache-2.0
#include "tests/memory/one_device.h"

#include "core/base/cancellation.h"
#include "core/tensor/memory_account.h"

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

OneDevice::OneDevice(int num_threads)
    : threads_("one", num_threads), timer_(NewThreadTimer(Env::Real(), threads_)) {
  auto devices = MakeDevices({.task = *DeviceName::Parse("/job:localhost/task:0"), .gpus_max = 0});
  CHECK_OK(devices.status());
  devices_ = *std::move(devices);
}

StatusOr<OneDevice::Ran> OneDevice::Run(const Graph& graph, const Step& step, int64_t limit) {
  Device& device = *devices_.front();
  std::vector<std::string> fed;
  std::vector<Tensor> feeds;
  std::vector<PartialShape> shapes;
  for (const auto& [name, value] : step.feeds) {
    fed.push_back(name);
    feeds.push_back(value);
    shapes.emplace_back(value.shape());
  }
  ASSIGN_OR_RETURN(std::vector<TensorName> feed_names, Parse(fed));
  ASSIGN_OR_RETURN(std::vector<TensorName> fetch_names, Parse(step.fetches));
  const CompileOptions options{.feeds = std::move(feed_names),
                               .fetches = std::move(fetch_names),
                               .targets = step.targets,
                               .feed_shapes = std::move(shapes),
                               .memory_limit = limit,
                               .env = &Env::Real(),
                               .threads = &threads_,
                               .client_device = device.info().name,
                               .predict = true};
  CompileReport report;
  ASSIGN_OR_RETURN(std::vector<Partition> partitions,
                   Compile(graph, {device.info()}, options, &report));
  ASSIGN_OR_RETURN(
      const auto executor,
      MakeExecutor(
          std::move(partitions.at(0).graph),
          {.device = &device, .threads = &threads_, .env = &Env::Real(), .timer = timer_.get()}));
  Ran ran{.predicted = std::move(report.memory)};
  MemoryAccount& task = MemoryAccount::Task();
  for (int64_t id = 1; id <= 2; ++id) {
    ran.fetched.clear();
    std::vector<Tensor> fetched(step.fetches.size());
    const int64_t before = task.in_use();
    task.ResetPeak();
    Cancellation cancellation;
    ResourceStore of_step;
    RETURN_IF_ERROR(executor->Run({.step_id = id,
                                   .cancellation = &cancellation,
                                   .step_resources = &of_step,
                                   .feeds = feeds.data(),
                                   .num_feeds = static_cast<int>(feeds.size()),
                                   .fetches = fetched.data(),
                                   .num_fetches = static_cast<int>(fetched.size())}));
    ran.peak_bytes = task.peak() - before;
    ran.fetched = std::move(fetched);
  }
  return ran;
}

}  // namespace penstock
