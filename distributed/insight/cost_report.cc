// SPDX-License-Identifier: Apache-2.0
#include "distributed/insight/cost_report.h"

#include <google/protobuf/util/json_util.h>

#include <utility>

#include "core/base/version.h"
#include "distributed/calibration/calibration_file.h"

namespace penstock {
namespace {

constexpr int kCostFileVersion = 1;
// The largest time, and the largest size, that is accepted from a file.
constexpr double kNanosMax = 1e15, kBytesMax = 1e15;

void AddStep(const MasterSession::StepCosts& step, wire::StepCosts* report) {
  for (const std::string& feed : step.names.feeds) report->add_feed(feed);
  for (const std::string& fetch : step.names.fetches) report->add_fetch(fetch);
  for (const std::string& target : step.names.targets) report->add_target(target);
  report->set_executions(static_cast<int64_t>(step.executions));
  report->set_median_ns(static_cast<double>(step.median_ns));
  if (step.status.ok()) {
    AddPrediction(step.predicted, report);
    AddPrediction(step.memory, report);
    return;
  }
  report->mutable_error()->set_code(static_cast<tensorflow::error::Code>(step.status.code()));
  report->mutable_error()->set_message(std::string(step.status.message()));
}

void AddMeasured(const CostTable::Record& record, wire::MeasuredNode* node) {
  node->set_node(record.node);
  for (const auto& [device, nanos] : record.times) {
    wire::MeasuredNode::Time* const time = node->add_time();
    time->set_device(device.ToString());
    time->set_nanos(nanos);
  }
  node->mutable_output_bytes()->Add(record.output_bytes.begin(), record.output_bytes.end());
}

void AddDevice(const DeviceInfo& device, double slowness, wire::DeviceCost* cost) {
  cost->set_slowness(slowness);
  cost->set_device(device.name.ToString());
  cost->set_flops_per_ns(device.rates.flops_per_ns);
  cost->set_bytes_per_ns(device.rates.bytes_per_ns);
  cost->set_launch_ns(device.rates.launch_ns);
  cost->set_lanes(device.lanes);
  // Only for CPUs does the description say how the rates were obtained; for a GPU it is the model.
  if (device.name.type == "CPU") cost->set_origin(device.description);
}

void AddLink(const CostTable::Link& link, wire::LinkCost* cost) {
  cost->set_from(link.from.ToString());
  cost->set_to(link.to.ToString());
  cost->set_latency_ns(link.latency_ns);
  cost->set_bytes_per_ns(link.bytes_per_ns);
  cost->set_transfers(link.transfers);
}

StatusOr<CostTable::Record> RecordOf(const wire::MeasuredNode& node) {
  CostTable::Record record{.node = node.node(), .times = {}, .output_bytes = {}};
  for (const wire::MeasuredNode::Time& time : node.time()) {
    ASSIGN_OR_RETURN(DeviceName device, DeviceName::Parse(time.device()));
    if (!device.full()) {
      return InvalidArgument("'", time.device(), "' is not a full device name");
    }
    if (!(time.nanos() >= 0 && time.nanos() <= kNanosMax)) {
      return InvalidArgument(time.nanos(), " is no time in nanoseconds");
    }
    record.times.emplace_back(std::move(device), time.nanos());
  }
  for (const double bytes : node.output_bytes()) {
    if (!(bytes >= -1 && bytes <= kBytesMax)) return InvalidArgument(bytes, " is no size in bytes");
    record.output_bytes.push_back(bytes);
  }
  return record;
}

StatusOr<DeviceInfo> DeviceOf(const wire::DeviceCost& cost) {
  ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(cost.device()));
  if (!name.full()) return InvalidArgument("is not a full device name");
  const DeviceRates rates = {.flops_per_ns = cost.flops_per_ns(),
                             .bytes_per_ns = cost.bytes_per_ns(),
                             .launch_ns = cost.launch_ns()};
  RETURN_IF_ERROR(CheckRates(rates));
  return DeviceInfo{.name = std::move(name), .rates = rates};
}

}  // namespace

void AddPrediction(const PlacementReport& predicted, wire::StepCosts* step) {
  step->set_predicted_ns(predicted.step_ns);
  for (const PlacementReport::Run& run : predicted.runs) {
    wire::NodeCost* const node = step->add_node();
    node->set_node(run.node);
    node->set_op(run.op);
    node->set_device(predicted.devices[run.device]);
    node->set_nanos(run.end_ns - run.start_ns);
    node->set_bytes(run.bytes);
    node->set_flops(run.flops);
    node->set_measured(run.measured);
  }
  double bytes = 0;
  for (const PlacementReport::Transfer& transfer : predicted.transfers) bytes += transfer.bytes;
  step->set_transfers(static_cast<int64_t>(predicted.transfers.size()));
  step->set_transfer_bytes(bytes);
}

void AddPrediction(const MemoryReport& predicted, wire::StepCosts* step) {
  for (const MemoryReport::Device& device : predicted.devices) {
    wire::DeviceMemory* const memory = step->add_memory();
    memory->set_device(device.device);
    memory->set_peak_bytes(device.peak_bytes);
    memory->set_peak_own_bytes(device.peak_own_bytes);
    memory->set_state_bytes(device.state_bytes);
    memory->set_fed_bytes(device.fed_bytes);
    memory->set_peak_node(device.peak_node);
    for (const MemoryReport::Tensor& tensor : device.largest) {
      wire::DeviceMemory::Tensor* const largest = memory->add_largest();
      largest->set_name(tensor.name);
      largest->set_bytes(tensor.bytes);
    }
  }
}

wire::CostReport ReportCosts(Task& task, size_t steps_max, absl::FunctionRef<bool()> goes_on) {
  wire::CostReport report;
  report.set_task(task.self().name);
  for (const auto& session : task.master().sessions()) {
    wire::SessionCosts* const costs = report.add_session();
    costs->set_handle(session->handle());
    for (const auto& step : session->PredictSteps(steps_max, goes_on)) {
      AddStep(step, costs->add_step());
    }
    const std::shared_ptr<const CostTable> table = session->costs();
    for (const DeviceInfo& device : session->devices()) {
      AddDevice(device, table == nullptr ? 1 : table->Slowness(device.name), costs->add_device());
    }
    if (table == nullptr) continue;
    for (const CostTable::Link& link : table->links()) AddLink(link, costs->add_link());
    for (const auto& record : table->Records()) AddMeasured(record, costs->add_measured());
  }
  return report;
}

Status WriteCostFile(Env& env, const std::string& path, wire::CostFile measured) {
  if (measured.node().empty()) {
    return FailedPrecondition(
        "nothing was measured: run traced steps, or a session with placement "
        "\"auto\" or build_cost_model");
  }
  measured.set_penstock_costs(kCostFileVersion);
  measured.set_penstock_version(kVersion);
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  CHECK(google::protobuf::util::MessageToJsonString(measured, &json, options).ok());
  return env.WriteFileAtomically(path, json);
}

StatusOr<SavedCosts> ReadCostFile(Env& env, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, env.ReadFile(path));
  wire::CostFile file;
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, &file);
  if (!parsed.ok()) {
    return InvalidArgument(
        path, " is not a file of costs (penstock cost --save): ", std::string(parsed.message()));
  }
  if (file.penstock_costs() != kCostFileVersion) {
    const std::string& writer = file.penstock_version();
    return InvalidArgument(path, " is a file of costs of version ", file.penstock_costs(),
                           writer.empty() ? "" : StrCat(" (written by Penstock ", writer, ")"),
                           ", expected version ", kCostFileVersion,
                           ": save it anew with `penstock cost --save`");
  }
  SavedCosts costs;
  for (const wire::MeasuredNode& node : file.node()) {
    const auto record = RecordOf(node);
    RETURN_IF_ERROR(Annotate(record.status(), StrCat(path, ": node '", node.node(), "'")));
    costs.table.Add(*record);
  }
  for (const wire::DeviceCost& cost : file.device()) {
    StatusOr<DeviceInfo> device = DeviceOf(cost);
    RETURN_IF_ERROR(Annotate(device.status(), StrCat(path, ": device '", cost.device(), "'")));
    costs.devices.push_back(*std::move(device));
  }
  return costs;
}

void UseRates(const SavedCosts& costs, std::vector<DeviceInfo>* devices) {
  for (DeviceInfo& device : *devices) {
    const DeviceInfo* like = nullptr;
    for (const DeviceInfo& known : costs.devices) {
      const bool same = known.name == device.name;
      if (same || (like == nullptr && known.name.type == device.name.type)) like = &known;
      if (same) break;
    }
    if (like != nullptr) device.rates = like->rates;
  }
}

}  // namespace penstock
