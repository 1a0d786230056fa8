// SPDX-License-Identifier: Apache-2.0
//
// RecordingSink: a GraphSink for the tests of this folder. It checks nothing and records the nodes
// that are added: "Mul(a, b)". Input makes the graph's inputs.
#pragma once

#include <string>
#include <vector>

#include "core/op/output.h"

namespace penstock {

class RecordingSink final : public GraphSink {
 public:
  struct Node {
    std::string op;
    std::vector<NodeInput> inputs;
    Attrs attrs;
    EdgeType type;
    PartialShape shape;
  };

  Output Input(DType dtype, PartialShape shape = {}) {
    nodes.push_back({.op = "Input", .type = {dtype}, .shape = std::move(shape)});
    return {this, static_cast<int>(nodes.size()) - 1, 0};
  }

  // Returns "Sum(Mul(%0, %1), [0])": inputs by their number, constants by their elements.
  std::string Text(Output output) const {
    if (!output.valid()) return "invalid";
    const Node& node = nodes[output.node];
    if (node.op == "Input") return StrCat("%", output.node);
    if (node.op == "Const") {
      const std::string text = node.attrs.at("value").get<Tensor>()->ToString();
      const size_t space = text.find(' ');
      return StrCat("[", space == std::string::npos ? "" : text.substr(space + 1), "]");
    }
    std::string args;
    for (const NodeInput& input : node.inputs) {
      for (const Output& each : input.outputs) {
        StrAppend(&args, args.empty() ? "" : ", ", Text(each));
      }
    }
    return StrCat(node.op, "(", args, ")", output.index > 0 ? StrCat(":", output.index) : "");
  }

  int AddNode(string_view op, const std::vector<NodeInput>& inputs, Attrs attrs,
              string_view) override {
    if (!status_.ok()) return -1;
    Node node{.op = std::string(op), .inputs = inputs, .attrs = std::move(attrs)};
    if (!inputs.empty() && !inputs[0].outputs.empty()) node.type = inputs[0].outputs[0].type();
    if (op == "Const") node.type = {node.attrs.at("value").get<Tensor>()->dtype()};
    if (op == "Shape") node.type = {DType::kInt32};
    nodes.push_back(std::move(node));
    return static_cast<int>(nodes.size()) - 1;
  }
  int num_outputs(int) const override { return 2; }
  EdgeType output_type(int node, int) const override { return nodes[node].type; }
  PartialShape output_shape(int node, int) const override { return nodes[node].shape; }
  std::string output_name(int node, int index) const override { return StrCat(node, ":", index); }
  Status status() const override { return status_; }
  void Fail(Status status) override {
    if (status_.ok()) status_ = std::move(status);
  }

  std::vector<Node> nodes;

 private:
  Status status_;
};

}  // namespace penstock
