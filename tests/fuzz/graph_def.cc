// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes all processing of a client's GraphDef before it runs: import with its functions, export,
// and compilation (pruning, folding, placement, partitioning) for its last node.
#include "core/base/check.h"
#include "core/compiler/compile.h"
#include "core/graph/graph.h"
#include "core/graph/graph_proto.h"
#include "core/op/registry.h"
#include "proto/tensorflow/graph.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace penstock {
namespace {

DeviceInfo Cpu(const char* name) {
  const StatusOr<DeviceName> device = DeviceName::Parse(name);
  CHECK_OK(device.status());
  return {.name = *device};
}

void Read(const uint8_t* data, size_t size) {
  static const std::vector<DeviceInfo> devices = {Cpu("/job:ps/replica:0/task:0/device:CPU:0"),
                                                  Cpu("/job:worker/replica:0/task:0/device:CPU:0")};
  tensorflow::GraphDef def;
  if (!def.ParseFromArray(data, static_cast<int>(size))) return;
  Graph graph(Registry::Global());
  const ImportLimits limits = {.nodes_max = 1000, .tensor_bytes_max = int64_t{64} << 20};
  if (!ImportGraph(def, &graph, limits).ok() || graph.num_nodes() == 0) return;

  tensorflow::GraphDef exported;
  ExportGraph(graph, &exported);
  Graph again(Registry::Global());
  CHECK_OK(ImportGraph(exported, &again));

  CompileOptions options;
  options.env = &Env::Real();
  options.threads = &Scheduler::Real();
  options.targets = {exported.node(exported.node_size() - 1).name()};
  options.allow_soft_placement = true;
  options.client_device = devices[1].name;
  (void)Compile(graph, devices, options);
}

}  // namespace
}  // namespace penstock

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::Read(data, size);
  return 0;
}
