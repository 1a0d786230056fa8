// SPDX-License-Identifier: Apache-2.0
//
// Finds strongly connected components by Tarjan's algorithm, with an explicit stack, because graphs
// can be deeper than a thread's stack. The algorithm walks from nodes to their inputs, and so
// finishes a component after all components from which edges lead to it.
#include "core/graph/reachability.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

class Tarjan {
 public:
  explicit Tarjan(const std::vector<std::vector<int>>& inputs)
      : inputs_(inputs),
        index_(inputs.size(), 0),
        low_(inputs.size(), 0),
        component_(inputs.size(), -1) {}

  std::vector<int> Run(const Graph& graph) {
    for (const Node* node : graph.nodes()) {
      if (index_[node->id()] == 0) Visit(node->id());
    }
    return std::move(component_);
  }
  int num_components() const { return num_components_; }

 private:
  struct Frame {
    int node;
    size_t next_input;
  };

  void Visit(int root) {
    std::vector<Frame> frames;
    const auto enter = [&](int node) {
      index_[node] = low_[node] = ++last_index_;
      open_.push_back(node);
      frames.push_back({node, 0});
    };
    enter(root);
    while (!frames.empty()) {
      Frame& frame = frames.back();
      const int node = frame.node;
      if (frame.next_input < inputs_[node].size()) {
        const int input = inputs_[node][frame.next_input++];
        if (index_[input] == 0) {
          enter(input);
        } else if (component_[input] < 0) {
          low_[node] = std::min(low_[node], index_[input]);
        }
        continue;
      }
      frames.pop_back();
      if (!frames.empty()) {
        const int consumer = frames.back().node;
        low_[consumer] = std::min(low_[consumer], low_[node]);
      }
      if (low_[node] == index_[node]) Close(node);
    }
  }

  // Makes a component of the nodes opened since `first`.
  void Close(int first) {
    int node;
    do {
      node = open_.back();
      open_.pop_back();
      component_[node] = num_components_;
    } while (node != first);
    ++num_components_;
  }

  const std::vector<std::vector<int>>& inputs_;
  std::vector<int> index_;  // by node, from 1 in the order of the walk; 0: not visited
  std::vector<int> low_;
  std::vector<int> component_;  // -1: not finished
  std::vector<int> open_;
  int last_index_ = 0;
  int num_components_ = 0;
};

}  // namespace

Reachability::Reachability(const Graph& graph, Source source) {
  std::vector<std::vector<int>> inputs(graph.max_id());
  for (const Node* node : graph.nodes()) {
    std::vector<int>& from = inputs[node->id()];
    for (int i = 0; i < node->num_inputs(); ++i) {
      if (node->input(i).node == nullptr) continue;
      const Node* const leads_from = source(*node, i);
      if (leads_from != nullptr) from.push_back(leads_from->id());
    }
    for (const Node* control : node->control_inputs()) from.push_back(control->id());
  }
  Tarjan tarjan(inputs);
  component_of_ = tarjan.Run(graph);
  sources_.resize(tarjan.num_components());

  first_input_.assign(tarjan.num_components() + 1, 0);
  const auto for_each_edge = [&](auto fn) {
    for (const Node* node : graph.nodes()) {
      const int component = component_of_[node->id()];
      for (const int input : inputs[node->id()]) {
        if (component_of_[input] != component) fn(component_of_[input], component);
      }
    }
  };
  for_each_edge([this](int, int component) { ++first_input_[component + 1]; });
  for (size_t i = 1; i < first_input_.size(); ++i) first_input_[i] += first_input_[i - 1];
  component_inputs_.resize(first_input_.back());
  std::vector<int> next(first_input_.begin(), first_input_.end() - 1);
  for_each_edge([&](int input, int component) { component_inputs_[next[component]++] = input; });
}

void Reachability::Find(absl::Span<const Seed> seeds) {
  std::fill(sources_.begin(), sources_.end(), Sources());
  int first = static_cast<int>(sources_.size());
  for (const Seed& seed : seeds) {
    const int component = component_of_[seed.node->id()];
    sources_[component].set(seed.source);
    first = std::min(first, component);
  }
  for (int component = first; component < static_cast<int>(sources_.size()); ++component) {
    for (int i = first_input_[component]; i < first_input_[component + 1]; ++i) {
      sources_[component] |= sources_[component_inputs_[i]];
    }
  }
}

}  // namespace penstock
