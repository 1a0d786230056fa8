// SPDX-License-Identifier: Apache-2.0
#include "distributed/rpc/value_proto.h"

#include <map>
#include <utility>

#include "core/runtime/timeline_label.h"
#include "core/wire/attr_proto.h"
#include "proto/penstock/worker.pb.h"
#include "proto/tensorflow/cluster.pb.h"
#include "proto/tensorflow/step_stats.pb.h"

namespace penstock {
namespace {

constexpr int64_t kNanosPerMicro = 1000;

void ToProto(const NodeStats& node, tensorflow::NodeExecStats* proto) {
  proto->set_node_name(node.node);
  proto->set_timeline_label(TimelineLabel(node));
  proto->set_thread_id(node.thread);
  proto->set_scheduled_nanos(node.scheduled_ns);
  proto->set_scheduled_micros(node.scheduled_ns / kNanosPerMicro);
  proto->set_all_start_nanos(node.start_ns);
  proto->set_all_start_micros(node.start_ns / kNanosPerMicro);
  const int64_t duration_ns = node.end_ns - node.start_ns;
  proto->set_op_end_rel_nanos(duration_ns);
  proto->set_op_end_rel_micros(duration_ns / kNanosPerMicro);
  proto->set_all_end_rel_nanos(duration_ns);
  proto->set_all_end_rel_micros(duration_ns / kNanosPerMicro);
  for (const NodeStats::Memory& used : node.memory) {
    tensorflow::AllocatorMemoryUsed* const memory = proto->add_memory();
    memory->set_allocator_name(used.allocator);
    memory->set_total_bytes(used.total_bytes);
    memory->set_peak_bytes(used.peak_bytes);
    memory->set_live_bytes(used.live_bytes);
  }
  if (node.persistent_bytes > 0) {
    proto->mutable_memory_stats()->set_persistent_memory_size(node.persistent_bytes);
  }
  for (const NodeStats::Out& out : node.outputs) {
    tensorflow::NodeOutput* const output = proto->add_output();
    output->set_slot(out.index);
    tensorflow::TensorDescription* const tensor = output->mutable_tensor_description();
    tensor->set_dtype(static_cast<tensorflow::DataType>(out.dtype));
    ShapeToProto(out.shape, tensor->mutable_shape());
    tensorflow::AllocationDescription* const memory = tensor->mutable_allocation_description();
    memory->set_requested_bytes(out.bytes);
    memory->set_allocated_bytes(out.bytes);
    memory->set_allocator_name(out.allocator);
    memory->set_ptr(out.address);
  }
}

StatusOr<NodeStats> FromProto(const tensorflow::NodeExecStats& proto) {
  NodeStats node{.node = proto.node_name(),
                 .scheduled_ns = proto.scheduled_nanos(),
                 .start_ns = proto.all_start_nanos(),
                 .end_ns = proto.all_start_nanos() + proto.all_end_rel_nanos(),
                 .thread = proto.thread_id(),
                 .persistent_bytes = proto.memory_stats().persistent_memory_size()};
  ParseTimelineLabel(proto.timeline_label(), &node);
  for (const tensorflow::NodeOutput& output : proto.output()) {
    const tensorflow::TensorDescription& tensor = output.tensor_description();
    const tensorflow::AllocationDescription& memory = tensor.allocation_description();
    NodeStats::Out out{.index = output.slot(),
                       .bytes = memory.requested_bytes(),
                       .allocator = memory.allocator_name(),
                       .address = memory.ptr()};
    // The output of a node with a dead value has no type.
    if (tensor.dtype() != 0) {
      ASSIGN_OR_RETURN(out.dtype, DTypeFromNumber(tensor.dtype()));
    }
    ASSIGN_OR_RETURN(const PartialShape shape, ShapeFromProto(tensor.shape()));
    if (shape.fully_known()) out.shape = shape.ToShape();
    node.outputs.push_back(std::move(out));
  }
  for (const tensorflow::AllocatorMemoryUsed& memory : proto.memory()) {
    node.memory.push_back({.allocator = memory.allocator_name(),
                           .total_bytes = memory.total_bytes(),
                           .peak_bytes = memory.peak_bytes(),
                           .live_bytes = memory.live_bytes()});
  }
  return node;
}

}  // namespace

void ToProto(const DeviceInfo& device, tensorflow::DeviceAttributes* proto) {
  proto->set_name(device.name.ToString());
  proto->set_device_type(device.name.type.value_or(""));
  proto->set_memory_limit(device.memory_limit);
  proto->set_incarnation(device.incarnation);
  proto->set_physical_device_desc(device.description);
}

StatusOr<DeviceInfo> FromProto(const tensorflow::DeviceAttributes& proto) {
  ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(proto.name()));
  if (!name.full()) return InvalidArgument("'", proto.name(), "' is not a full device name");
  const DeviceRates rates = DefaultRates(*name.type);
  return DeviceInfo{.name = std::move(name),
                    .incarnation = proto.incarnation(),
                    .memory_limit = proto.memory_limit(),
                    .description = proto.physical_device_desc(),
                    .rates = rates};
}

void ToProto(const ClusterSpec& cluster, tensorflow::ClusterDef* proto) {
  for (const auto& [name, tasks] : cluster.jobs()) {
    tensorflow::JobDef* const job = proto->add_job();
    job->set_name(name);
    for (const auto& [index, address] : tasks) (*job->mutable_tasks())[index] = address;
  }
}

StatusOr<ClusterSpec> FromProto(const tensorflow::ClusterDef& proto) {
  ClusterSpec cluster;
  for (const tensorflow::JobDef& job : proto.job()) {
    const std::map<int, std::string> tasks(job.tasks().begin(), job.tasks().end());
    for (const auto& [index, address] : tasks) {
      RETURN_IF_ERROR(cluster.AddTask(job.name(), index, address));
    }
  }
  return cluster;
}

void ToProto(const std::vector<DeviceStats>& stats, tensorflow::StepStats* proto) {
  for (const DeviceStats& device : stats) {
    tensorflow::DeviceStepStats* const d = proto->add_dev_stats();
    d->set_device(device.device);
    for (const NodeStats& node : device.nodes) ToProto(node, d->add_node_stats());
  }
}

void ToProto(const std::vector<CostNode>& nodes, tensorflow::CostGraphDef* proto) {
  for (const CostNode& node : nodes) {
    tensorflow::CostGraphDef::Node* const row = proto->add_node();
    row->set_name(node.name);
    row->set_device(node.device);
    row->set_id(node.id);
    row->set_compute_cost((node.nanos + kNanosPerMicro - 1) / kNanosPerMicro);
    row->set_temporary_memory_size(node.temporary_bytes);
    row->set_persistent_memory_size(node.persistent_bytes);
    row->set_is_final(node.is_send);
    for (const CostNode::Input& in : node.inputs) {
      auto* const input = row->add_input_info();
      input->set_preceding_node(in.node);
      input->set_preceding_port(in.output);
    }
    for (const int control : node.control_inputs) row->add_control_input(control);
    for (const CostNode::Output& out : node.outputs) {
      auto* const output = row->add_output_info();
      output->set_size(out.bytes);
      output->set_alias_input_port(out.alias_input);
      output->set_dtype(static_cast<tensorflow::DataType>(out.dtype));
      ShapeToProto(out.shape, output->mutable_shape());
    }
  }
}

StatusOr<std::vector<CostNode>> FromProto(const tensorflow::CostGraphDef& proto) {
  std::vector<CostNode> nodes;
  for (const tensorflow::CostGraphDef::Node& row : proto.node()) {
    CostNode node{.name = row.name(),
                  .device = row.device(),
                  .id = row.id(),
                  .control_inputs = {row.control_input().begin(), row.control_input().end()},
                  .nanos = row.compute_cost() * kNanosPerMicro,
                  .temporary_bytes = row.temporary_memory_size(),
                  .persistent_bytes = row.persistent_memory_size(),
                  .is_send = row.is_final()};
    for (const auto& in : row.input_info()) {
      node.inputs.push_back({in.preceding_node(), in.preceding_port()});
    }
    for (const auto& out : row.output_info()) {
      CostNode::Output output{.bytes = out.size(),
                              .alias_input = static_cast<int>(out.alias_input_port())};
      if (out.dtype() != 0) {
        ASSIGN_OR_RETURN(output.dtype, DTypeFromNumber(out.dtype()));
      }
      ASSIGN_OR_RETURN(output.shape, ShapeFromProto(out.shape()));
      node.outputs.push_back(std::move(output));
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

StatusOr<std::vector<DeviceStats>> FromProto(const tensorflow::StepStats& proto) {
  std::vector<DeviceStats> stats;
  for (const tensorflow::DeviceStepStats& d : proto.dev_stats()) {
    DeviceStats device{.device = d.device()};
    for (const tensorflow::NodeExecStats& n : d.node_stats()) {
      ASSIGN_OR_RETURN(NodeStats node, FromProto(n));
      device.nodes.push_back(std::move(node));
    }
    stats.push_back(std::move(device));
  }
  return stats;
}

void ToProto(const TrainingProgram& program, wire::TrainingProgram* proto) {
  for (const TrainingProgram::Update& update : program.updates) {
    wire::TrainingProgram::Update* const added = proto->add_update();
    added->set_node(update.node);
    added->set_hash(update.hash);
  }
  for (const TrainingProgram::Node& node : program.nodes) {
    wire::TrainingProgram::Node* const added = proto->add_node();
    added->set_hash(node.hash);
    added->set_text(node.text);
  }
}

TrainingProgram FromProto(const wire::TrainingProgram& proto) {
  TrainingProgram program;
  for (const auto& update : proto.update()) {
    program.updates.push_back({update.node(), update.hash()});
  }
  for (const auto& node : proto.node()) {
    if (program.nodes.size() == TrainingProgram::kNodesMax) break;
    const bool fits = node.text().size() <= TrainingProgram::kTextMax;
    program.nodes.push_back({node.hash(), fits ? node.text() : "a node of a long name"});
  }
  return program;
}

}  // namespace penstock
