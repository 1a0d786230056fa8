// SPDX-License-Identifier: Apache-2.0
#include "core/compiler/placement/testing/realistic.h"

#include <utility>

#include "core/compiler/placement/testing/problems.h"

namespace penstock {
namespace {

constexpr double kLatencyNanos = 50'000, kLinkBytesPerNano = 2;
constexpr double kLaunchNanos = 2'000, kFlopsPerNano = 50;
constexpr double kFloat = 4;

// Builds a network, node by node. `inputs` are nodes.
class Network {
 public:
  Network(std::string name, int devices) {
    made_.name = std::move(name);
    made_.problem = EqualDevices(devices, kLatencyNanos, kLinkBytesPerNano);
    for (int d = 0; d < devices; ++d) all_devices_.push_back(d);
  }

  int devices() const { return static_cast<int>(all_devices_.size()); }

  int Add(const std::vector<int>& inputs, double flops, double floats, int hand) {
    std::vector<PlacementProblem::Input> edges;
    for (const int input : inputs) edges.push_back({input, input});
    const int node = made_.problem.num_nodes();
    made_.problem.candidates.push_back(all_devices_);
    made_.problem.AddNode(node, edges, {kLaunchNanos + flops / kFlopsPerNano});
    made_.problem.output_bytes.push_back(floats * kFloat);
    made_.by_hand.push_back(hand);
    nodes_.push_back({inputs, flops, floats});
    return node;
  }

  // Adds a gradient node for each node, in reverse order. It takes twice the time of its node, has
  // an output of the same size, and reads the node's inputs and the gradients of the node's
  // readers.
  RealisticProblem WithBackward() {
    const int forward = made_.problem.num_nodes();
    std::vector<std::vector<int>> readers(forward);
    for (int node = 0; node < forward; ++node) {
      for (const int input : nodes_[node].inputs) readers[input].push_back(node);
    }
    std::vector<int> gradient(forward);
    for (int node = forward - 1; node >= 0; --node) {
      const Node of = nodes_[node];
      std::vector<int> inputs = of.inputs;
      if (readers[node].empty()) inputs.push_back(node);
      for (const int reader : readers[node]) inputs.push_back(gradient[reader]);
      gradient[node] = Add(inputs, 2 * of.flops, of.floats, made_.by_hand[node]);
    }
    return std::move(made_);
  }

 private:
  struct Node {
    std::vector<int> inputs;
    double flops, floats;
  };
  RealisticProblem made_;
  std::vector<int> all_devices_;
  std::vector<Node> nodes_;
};

}  // namespace

RealisticProblem StackedLstm(int devices) {
  constexpr int kLayers = 4, kMoments = 16;
  constexpr double kBatch = 64, kUnits = 512;
  constexpr double kWeights = 2 * kUnits * 4 * kUnits;
  Network network("stacked LSTM", devices);
  std::vector<int> weights;
  for (int layer = 0; layer < kLayers; ++layer) {
    weights.push_back(network.Add({}, 0, kWeights, layer * devices / kLayers));
  }
  std::vector<int> state(kLayers, -1);
  for (int moment = 0; moment < kMoments; ++moment) {
    for (int layer = 0; layer < kLayers; ++layer) {
      std::vector<int> inputs = {weights[layer]};
      if (layer > 0) inputs.push_back(state[layer - 1]);
      if (state[layer] >= 0) inputs.push_back(state[layer]);
      state[layer] = network.Add(inputs, 2 * kBatch * kWeights, 2 * kBatch * kUnits,
                                 layer * devices / kLayers);
    }
  }
  return network.WithBackward();
}

RealisticProblem WideAndDeep(int devices) {
  constexpr int kTables = 8;
  constexpr double kBatch = 1024, kUnits = 64, kHidden = 1024;
  Network network("wide and deep", devices);
  std::vector<int> rows;
  for (int table = 0; table < kTables; ++table) {
    rows.push_back(network.Add({}, 10 * kBatch * kUnits, kBatch * kUnits, table % devices));
  }
  std::vector<int> wide_rows;
  for (int table = 0; table < kTables; ++table) {
    wide_rows.push_back(network.Add({}, 10 * kBatch, kBatch, table % devices));
  }
  const int wide = network.Add(wide_rows, kBatch * kTables, kBatch, 0);
  int deep = network.Add(rows, kBatch * kUnits * kTables, kBatch * kUnits * kTables, 0);
  double width = kUnits * kTables;
  for (int layer = 0; layer < 3; ++layer) {
    deep = network.Add({deep}, 2 * kBatch * width * kHidden, kBatch * kHidden, 0);
    width = kHidden;
  }
  network.Add({deep, wide}, 2 * kBatch * kHidden, kBatch, 0);
  return network.WithBackward();
}

RealisticProblem Convnet(int devices) {
  constexpr double kPixels = 32 * 28 * 28;
  Network network("convnet", devices);
  int last = network.Add({}, 0, kPixels, 0);
  double channels = 1, pixels = kPixels;
  for (int layer = 0; layer < 8; ++layer) {
    const double out = layer < 4 ? 32 : 64;
    if (layer == 4) pixels /= 4;
    last = network.Add({last}, 2 * 9 * channels * out * pixels, out * pixels, 0);
    channels = out;
  }
  for (const double units : {512.0, 10.0}) {
    last = network.Add({last}, 2 * 32 * 7 * 7 * 64 * units, 32 * units, 0);
  }
  return network.WithBackward();
}

RealisticProblem Inception(int devices) {
  constexpr double kPixels = 16 * 28 * 28, kChannels = 192;
  Network network("inception", devices);
  int last = network.Add({}, 0, kChannels * kPixels, 0);
  for (int block = 0; block < 4; ++block) {
    std::vector<int> ends;
    for (int branch = 0; branch < 4; ++branch) {
      int end = last;
      double channels = kChannels;
      for (int layer = 0; layer < (branch == 0 ? 1 : branch); ++layer) {
        const double kernel = layer == 0 ? 1 : 9;
        end = network.Add({end}, 2 * kernel * channels * 48 * kPixels, 48 * kPixels,
                          branch % devices);
        channels = 48;
      }
      ends.push_back(end);
    }
    last = network.Add(ends, kChannels * kPixels, kChannels * kPixels, 0);
  }
  return network.WithBackward();
}

}  // namespace penstock
