// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/summarize_training.h"

#include <farmhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/op/private_attrs.h"

namespace penstock {
namespace {

constexpr uint64_t kBackEdge = 0x6261636b;       // the input of a loop's Merge from the loop's body
constexpr uint64_t kNotCompared = 0x73656564;    // an input that is not compared: a seed
constexpr size_t kConstantBytesMax = 64 * 1024;  // only these first bytes of a constant are hashed
constexpr size_t kNameMax = 256;                 // maximum length of a node's name in texts
constexpr size_t kTextMax = 160;                 // attributes that make a text longer are left out
constexpr int kLoopRounds = 3;  // hashes cover loops that are nested up to this depth

uint64_t Hash(string_view text) { return util::Fingerprint64(text.data(), text.size()); }
uint64_t Hash(absl::Span<const uint64_t> numbers) {
  return util::Fingerprint64(reinterpret_cast<const char*>(numbers.data()),
                             numbers.size() * sizeof(uint64_t));
}

bool IsComparedAttr(string_view name) {
  static constexpr std::array<string_view, 15> kIgnored = {"shared_name",
                                                           "container",
                                                           "seed",
                                                           "seed2",
                                                           "frame_name",
                                                           "tensor_array_name",
                                                           "stack_name",
                                                           "use_locking",
                                                           "debug_name",
                                                           "parallel_iterations",
                                                           "swap_memory",
                                                           "back_prop",
                                                           "allowed_devices",
                                                           "source",
                                                           "message"};
  return !absl::StartsWith(name, "_") && absl::c_find(kIgnored, name) == kIgnored.end();
}

bool IsSeed(const Node& node, int input) {
  static constexpr std::array<string_view, 4> kSeeds = {"seed", "seed2", "key", "counter"};
  const std::vector<ArgDef>& args = node.op().inputs;
  if (static_cast<int>(args.size()) != node.num_inputs()) return false;  // has a list of inputs
  return absl::c_find(kSeeds, args[input].name) != kSeeds.end();
}

// Returns whether output 0 of the node is its input 0, as of an Identity or a Print.
bool PassesOn(const Node& node) {
  const OpDef& op = node.op();
  return op.passes_through || (op.acts_outside && op.is_view);
}

// Returns whether the node brings training data into the step.
bool IsInput(const Node& node) {
  const OpDef& op = node.op();
  if (op.is_placeholder || op.may_wait || op.acts_outside) return true;
  // Datasets and their iterators describe their elements.
  return node.FindAttr("output_types") != nullptr && node.FindAttr("output_shapes") != nullptr;
}

// Returns the output from which `edge` gets its value, before any nodes that only pass it on.
Endpoint SourceOf(Endpoint edge) {
  while (edge.node != nullptr && PassesOn(*edge.node)) edge = edge.node->input(0);
  return edge;
}

std::string TextOfTensor(const Tensor& tensor) {
  std::string text = StrCat(Name(tensor.dtype()), tensor.shape().ToString());
  if (!IsPlain(tensor.dtype()) || tensor.bytes() == 0) return text;
  const size_t bytes = std::min<size_t>(tensor.bytes(), kConstantBytesMax);
  return text.append(static_cast<const char*>(tensor.raw_data()), bytes);
}

std::string TextOf(const AttrValue& value) {
  if (const Tensor* tensor = value.get<Tensor>()) return TextOfTensor(*tensor);
  if (const FunctionName* function = value.get<FunctionName>()) {
    std::string name = function->name;  // such as "__inference_step_123"
    std::erase_if(name, [](char c) { return absl::ascii_isdigit(c); });
    return name;
  }
  return value.ToString();
}

// Drops the number that follows "worker", "task" or "replica", as in "worker_1/step".
std::string WithoutTaskNumbers(std::string name) {
  for (const char* word : {"worker", "task", "replica"}) {
    for (size_t at = name.find(word); at != std::string::npos; at = name.find(word, at)) {
      at += std::strlen(word);
      if (at < name.size() && (name[at] == '_' || name[at] == ':')) ++at;
      while (at < name.size() && absl::ascii_isdigit(name[at])) name.erase(at, 1);
    }
  }
  return name;
}

const std::string& NameOfVariable(const Node& variable) {
  const std::string* const shared = variable.attr<std::string>("shared_name");
  return shared == nullptr || shared->empty() ? variable.name() : *shared;
}

// Returns a hash of the node without its inputs.
uint64_t HashWithoutInputs(const Node& node) {
  std::string text = node.op_name();
  for (const auto& [name, value] : node.attrs()) {
    if (IsComparedAttr(name)) StrAppend(&text, "\n", name, "=", TextOf(value));
  }
  if (node.op().holds_parameters && node.FindAttr(kLocalAttr) == nullptr) {
    StrAppend(&text, "\n", WithoutTaskNumbers(NameOfVariable(node)));
  }
  return Hash(text);
}

std::string Describe(const Node& node) {
  std::string text = StrCat("'", node.name().substr(0, kNameMax), "' (", node.op_name());
  for (const auto& [name, value] : node.attrs()) {
    if (!IsComparedAttr(name) || value.get<EdgeType>() != nullptr) continue;
    const Tensor* const tensor = value.get<Tensor>();
    if (tensor != nullptr && tensor->num_elements() != 1) continue;
    const std::string attr = StrCat(", ", name, "=", value.ToString());
    if (text.size() + attr.size() < kTextMax) text += attr;
  }
  return text + ")";
}

// The nodes that some updates depend on, each after the nodes that it depends on itself.
class Slice {
 public:
  // Adds `root` and all nodes before it that are not in the slice yet.
  void Add(const Node* root) {
    AddTree(root);
    while (!loops_.empty()) {
      const Node* const next = loops_.back();
      loops_.pop_back();
      AddTree(next);
    }
  }

  size_t size() const { return entries_.size(); }
  const Node& node(size_t i) const { return *entries_[i].node; }
  int IndexOf(const Node* node) const { return index_.at(node); }

  // Returns a hash of each node and the nodes before it. `before`: the hashes of an earlier round,
  // for back edges of loops; empty: back edges are all equal.
  std::vector<uint64_t> Round(const std::vector<uint64_t>& before) const {
    std::vector<uint64_t> hashes(entries_.size());
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Node& node = *entries_[i].node;
      std::vector<uint64_t> numbers = {entries_[i].own_hash};
      for (int k = 0; k < node.num_inputs(); ++k) {
        numbers.push_back(HashOfInput(node, k, before, hashes));
      }
      hashes[i] = Hash(numbers);
    }
    return hashes;
  }
  bool has_loops() const { return has_loops_; }

 private:
  struct Entry {
    const Node* node;
    uint64_t own_hash;
  };
  struct Visit {
    const Node* node;
    int next_input = 0;
  };

  void AddTree(const Node* root) {
    if (!index_.try_emplace(root, -1).second) return;
    std::vector<Visit> path = {{root}};
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next_input < visit.node->num_inputs()) {
        const Node* const input = NodeBefore(*visit.node, visit.next_input++);
        if (input != nullptr && index_.try_emplace(input, -1).second) path.push_back({input});
        continue;
      }
      index_[visit.node] = static_cast<int>(entries_.size());
      entries_.push_back({visit.node, HashWithoutInputs(*visit.node)});
      path.pop_back();
    }
  }

  // Returns the node of an input; null if it is not compared. Notes the source of a back edge.
  const Node* NodeBefore(const Node& node, int input) {
    const Node* const source = SourceOf(node.input(input)).node;
    if (source == nullptr || IsSeed(node, input) || IsInput(*source)) return nullptr;
    if (!IsLoopBackEdge(*source, node)) return source;
    has_loops_ = true;
    loops_.push_back(source);
    return nullptr;
  }

  uint64_t HashOfInput(const Node& node, int input, const std::vector<uint64_t>& before,
                       const std::vector<uint64_t>& hashes) const {
    const Endpoint source = SourceOf(node.input(input));
    if (source.node == nullptr || IsSeed(node, input)) return kNotCompared;
    if (IsInput(*source.node)) {
      return Hash(StrCat("input ", Name(node.input_type(input).dtype)));
    }
    const bool back = IsLoopBackEdge(*source.node, node);
    if (back && before.empty()) return kBackEdge;
    const uint64_t hash = (back ? before : hashes)[IndexOf(source.node)];
    return Hash({{hash, static_cast<uint64_t>(source.index)}});
  }

  std::vector<Entry> entries_;
  absl::flat_hash_map<const Node*, int> index_;  // into entries_; -1: being visited
  std::vector<const Node*> loops_;               // roots to be visited
  bool has_loops_ = false;
};

// Returns the updates in the partitions, as nodes of `graph`, sorted by what they update.
std::vector<const Node*> UpdatesIn(const Graph& graph, const std::vector<Partition>& partitions) {
  std::vector<const Node*> updates;
  for (const Partition& partition : partitions) {
    for (const Node* const node : partition.graph.nodes()) {
      if (node->op().update_rule.empty()) continue;
      const Node* const original = graph.FindNode(node->name());
      if (original == nullptr || original->op_name() != node->op_name()) continue;
      if (original->num_inputs() > 0) updates.push_back(original);
    }
  }
  const auto key = [](const Node* update) {
    return std::tie(NameOfVariable(*update->input(0).node), update->name());
  };
  absl::c_sort(updates, [&](const Node* a, const Node* b) { return key(a) < key(b); });
  return updates;
}

}  // namespace

TrainingProgram SummarizeTraining(const Graph& graph, const std::vector<Partition>& partitions) {
  TrainingProgram program;
  const std::vector<const Node*> updates = UpdatesIn(graph, partitions);
  if (updates.empty()) return program;
  Slice slice;
  for (const Node* update : updates) slice.Add(update);
  std::vector<uint64_t> hashes = slice.Round({});
  for (size_t i = 0; i < slice.size() && i < TrainingProgram::kNodesMax; ++i) {
    program.nodes.push_back({hashes[i], Describe(slice.node(i))});
  }
  for (int round = 0; slice.has_loops() && round < kLoopRounds; ++round) {
    hashes = slice.Round(hashes);
  }
  for (const Node* update : updates) {
    program.updates.push_back({update->name(), hashes[slice.IndexOf(update)]});
  }
  return program;
}

}  // namespace penstock
