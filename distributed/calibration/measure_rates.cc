// SPDX-License-Identifier: Apache-2.0
#include "distributed/calibration/measure_rates.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/cancellation.h"
#include "core/graph/graph.h"
#include "core/op/resource.h"
#include "core/runtime/device.h"
#include "core/runtime/executor.h"
#include "distributed/calibration/calibration_file.h"

namespace penstock {
namespace {

constexpr int64_t kSmallNodes = 256;
constexpr int64_t kMatrixSide = 384;
constexpr int64_t kVectorElements = int64_t{4} << 20;

Tensor Ones(const Shape& shape) {
  Tensor ones(DType::kFloat, shape);
  auto elements = ones.mutable_flat<float>();
  std::fill(elements.begin(), elements.end(), 1.0f);
  return ones;
}

StatusOr<Node*> AddConstant(const std::string& name, Tensor value, Graph* graph) {
  return graph->AddNode({.name = name,
                         .op = "Const",
                         .attrs = {{"dtype", DType::kFloat}, {"value", std::move(value)}}});
}

StatusOr<Node*> AddFloatOp(const std::string& name, const std::string& op,
                           std::vector<Endpoint> inputs, Graph* graph) {
  return graph->AddNode(
      {.name = name, .op = op, .inputs = std::move(inputs), .attrs = {{"T", DType::kFloat}}});
}

StatusOr<Graph> SmallNodes(const Registry& registry) {
  Graph graph(registry);
  ASSIGN_OR_RETURN(Node * last, AddConstant("first", Ones({}), &graph));
  for (int64_t i = 0; i < kSmallNodes; ++i) {
    ASSIGN_OR_RETURN(last, AddFloatOp(StrCat("neg", i), "Neg", {{last, 0}}, &graph));
  }
  return graph;
}

StatusOr<Graph> Product(const Registry& registry) {
  Graph graph(registry);
  ASSIGN_OR_RETURN(Node * matrix, AddConstant("matrix", Ones({kMatrixSide, kMatrixSide}), &graph));
  RETURN_IF_ERROR(AddFloatOp("product", "MatMul", {{matrix, 0}, {matrix, 0}}, &graph).status());
  return graph;
}

StatusOr<Graph> LargeNegation(const Registry& registry) {
  Graph graph(registry);
  ASSIGN_OR_RETURN(Node * vector, AddConstant("vector", Ones({kVectorElements}), &graph));
  RETURN_IF_ERROR(AddFloatOp("negation", "Neg", {{vector, 0}}, &graph).status());
  return graph;
}

// Returns how long the quickest of several runs took, because slower runs were disturbed by other
// processes or by the costs of a first run.
StatusOr<double> QuickestRun(Graph graph, Device& device, const MeasureOptions& options) {
  for (Node* node : graph.nodes()) graph.set_assigned_device(node, device.name());
  ASSIGN_OR_RETURN(const auto executor, MakeExecutor(std::move(graph), {.device = &device,
                                                                        .threads = options.threads,
                                                                        .env = options.env,
                                                                        .timer = options.timer}));
  double quickest = std::numeric_limits<double>::infinity();
  const int64_t latest_ns = options.env->NowNanos() + options.limit_ns / 3;
  for (int run = 0; run < 2 || options.env->NowNanos() < latest_ns; ++run) {
    Cancellation cancellation;
    ResourceStore of_step;
    const int64_t begin_ns = options.env->NowNanos();
    RETURN_IF_ERROR(executor->Run({.cancellation = &cancellation, .step_resources = &of_step}));
    quickest = std::min(quickest, static_cast<double>(options.env->NowNanos() - begin_ns));
  }
  return quickest;
}

}  // namespace

StatusOr<DeviceRates> MeasureCpuRates(const MeasureOptions& options) {
  ASSIGN_OR_RETURN(const DeviceName task, DeviceName::Parse("/job:calibration/task:0"));
  ASSIGN_OR_RETURN(const auto devices, MakeDevices({.task = task, .gpus_max = 0}));
  Device& cpu = *devices.front();
  const auto time = [&](StatusOr<Graph> graph) -> StatusOr<double> {
    RETURN_IF_ERROR(graph.status());
    return QuickestRun(*std::move(graph), cpu, options);
  };
  ASSIGN_OR_RETURN(const double small, time(SmallNodes(*options.registry)));
  ASSIGN_OR_RETURN(const double product, time(Product(*options.registry)));
  ASSIGN_OR_RETURN(const double negation, time(LargeNegation(*options.registry)));
  const double launch = small / kSmallNodes;
  const double flops = 2.0 * kMatrixSide * kMatrixSide * kMatrixSide;
  const double bytes = 2.0 * sizeof(float) * kVectorElements;  // read and written
  const DeviceRates rates = {.flops_per_ns = flops / (product - launch),
                             .bytes_per_ns = bytes / (negation - launch),
                             .launch_ns = launch};
  const Status plausible = CheckRates(rates);
  if (!plausible.ok()) return Status(StatusCode::kOutOfRange, plausible.message());
  return rates;
}

}  // namespace penstock
