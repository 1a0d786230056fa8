// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "core/compiler/cost_model.h"

namespace penstock {
namespace {

// Rough rates of one device. They need only rank alternatives; measured costs replace them.
struct Rates {
  double flops_per_ns;
  double bytes_per_ns;
  double launch_ns;
};
constexpr Rates kCpu = {.flops_per_ns = 50, .bytes_per_ns = 10, .launch_ns = 200};
constexpr Rates kGpu = {.flops_per_ns = 5000, .bytes_per_ns = 1000, .launch_ns = 5000};

// A copy between devices of one task, and a message between tasks (perf.md's loopback figures are
// of this order: what matters is that they differ by about ten).
constexpr Rates kSameTask = {.flops_per_ns = 0, .bytes_per_ns = 10, .launch_ns = 10'000};
constexpr Rates kNetwork = {.flops_per_ns = 0, .bytes_per_ns = 1, .launch_ns = 100'000};

// Stands for a dimension that is not known before the step: a batch.
constexpr double kUnknownDim = 64;

double Elements(const PartialShape& shape) {
  if (!shape.known_rank()) return kUnknownDim * kUnknownDim;
  double product = 1;
  for (int64_t d : shape.dims()) product *= d < 0 ? kUnknownDim : static_cast<double>(d);
  return product;
}

class StaticCostModel final : public CostModel {
 public:
  explicit StaticCostModel(ShapeMap shapes) : shapes_(std::move(shapes)) {}

  double NodeNanos(const Node& node, const DeviceInfo& device) const override {
    const Rates& rates = device.name.type == "GPU" ? kGpu : kCpu;
    double bytes = 0;
    for (const Endpoint& in : node.inputs()) bytes += OutputBytes(*in.node, in.index);
    for (int i = 0; i < node.num_outputs(); ++i) bytes += OutputBytes(node, i);
    return rates.launch_ns + std::max(Flops(node) / rates.flops_per_ns, bytes / rates.bytes_per_ns);
  }

  double TransferNanos(const Node& src, int output, const DeviceInfo& from,
                       const DeviceInfo& to) const override {
    if (from.name == to.name) return 0;
    const Rates& rates = from.name.SameTask(to.name) ? kSameTask : kNetwork;
    return rates.launch_ns + OutputBytes(src, output) / rates.bytes_per_ns;
  }

  double OutputBytes(const Node& node, int output) const override {
    return Elements(ShapeOf(node, output)) *
           static_cast<double>(SizeOf(node.output_type(output).dtype));
  }

 private:
  const PartialShape& ShapeOf(const Node& node, int output) const {
    static const PartialShape kUnknown;
    const auto id = static_cast<size_t>(node.id());
    return id < shapes_.size() && output < static_cast<int>(shapes_[id].size())
               ? shapes_[id][output]
               : kUnknown;
  }

  // Products sum over one input's dimensions for each element of the output; everything else is
  // taken to do one operation per element.
  double Flops(const Node& node) const {
    const std::string& op = node.op_name();
    if (node.num_outputs() == 0) return 0;
    const double out = Elements(ShapeOf(node, 0));
    if (node.num_inputs() < 2) return out;
    const Endpoint a = node.input(0);
    const Endpoint b = node.input(1);
    if (op == "MatMul" || op.rfind("BatchMatMul", 0) == 0) {
      const PartialShape& shape = ShapeOf(*a.node, a.index);
      if (!shape.known_rank() || shape.rank() < 2) return 2 * out * kUnknownDim;
      const bool* transposed = node.attr<bool>(op == "MatMul" ? "transpose_a" : "adj_x");
      const int64_t inner = shape.dim(shape.rank() - (transposed && *transposed ? 2 : 1));
      return 2 * out * (inner < 0 ? kUnknownDim : static_cast<double>(inner));
    }
    if (op.rfind("Conv", 0) == 0) {
      // Filter elements per output channel times the spatial output; the same for both gradients.
      const PartialShape& filter = ShapeOf(*b.node, b.index);
      const double channels =
          filter.known_rank() && filter.rank() > 0 && filter.dim(filter.rank() - 1) > 0
              ? static_cast<double>(filter.dim(filter.rank() - 1))
              : kUnknownDim;
      return 2 * out * Elements(filter) / channels;
    }
    return out;
  }

  const ShapeMap shapes_;
};

}  // namespace

std::unique_ptr<CostModel> NewStaticCostModel(ShapeMap shapes) {
  return std::make_unique<StaticCostModel>(std::move(shapes));
}

}  // namespace penstock
