// SPDX-License-Identifier: Apache-2.0
#include "client/functions/graph_function.h"

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/error_origin.h"
#include "core/functions/embedded_functions.h"
#include "core/graph/graph_proto.h"
#include "core/wire/deterministic_bytes.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock::client {
namespace {

// A constant from outside with at most this many bytes is copied into the function.
constexpr size_t kCopiedBytesMax = 4096;

// The attribute with GraphFunction::lines.
constexpr char kLinesAttr[] = "_function_lines";
// The prefix of the names of a function's nodes in errors (core/callable).
constexpr char kCallPrefix[] = "call/";

tensorflow::DataType ProtoType(DType type) {
  return static_cast<tensorflow::DataType>(Number(type));
}

// Collects the nodes that are built for one function. Until the function is complete, they read
// tensors from outside through plain edges.
class FunctionContext final : public GraphBuilder::Context {
 public:
  FunctionContext(GraphBuilder& graph, std::string name, SourceLine line)
      : graph_(graph), name_(std::move(name)), line_(line) {}

  Status Adapt(GraphBuilder::NewNode* node) override {
    for (const Node* control : node->control_inputs) {
      if (Owns(control->id())) continue;
      return Refuse(StrCat("cannot wait for '", control->name(), "', which is outside of it"));
    }
    for (NodeInput& input : node->inputs) {
      for (Output& output : input.outputs) RETURN_IF_ERROR(Import(&output));
    }
    return OkStatus();
  }
  void Added(int node) override { own_.insert(node); }

  bool Owns(int node) const { return own_.contains(node); }

  // Replaces a tensor from outside by a copy if it is a small constant.
  Status Import(Output* output) {
    if (output->sink != &graph_ || graph_.NodeOf(*output) == nullptr || Owns(output->node)) {
      return OkStatus();  // AddNode reports an output that does not exist
    }
    if (output->type().ref) {
      return Refuse(StrCat("cannot use the reference '", output->name(),
                           "', which is outside of it: read it there"));
    }
    const Node* const node = graph_.NodeOf(*output);
    const Tensor* const value = node->op().is_constant ? output->constant() : nullptr;
    if (value == nullptr || value->bytes() > kCopiedBytesMax) return OkStatus();
    const auto [copy, is_new] = copies_.try_emplace(output->node);
    if (is_new) {
      const auto alone = graph_.ClearControlDependencies();
      copy->second = Constant(graph_, *value);
    }
    *output = copy->second;
    return graph_.status();
  }

 private:
  Status Refuse(const std::string& why) const {
    return MadeAt(InvalidArgument("function '", name_, "' ", why), line_);
  }

  GraphBuilder& graph_;
  const std::string name_;
  const SourceLine line_;
  std::set<int> own_;             // ids
  std::map<int, Output> copies_;  // constants, by the ids of the originals
};

// Writes a function as a FunctionDef.
class Writer {
 public:
  Writer(GraphBuilder& graph, const FunctionContext& context, const Outputs& arguments,
         GraphFunction* function)
      : graph_(graph), context_(context), function_(*function) {
    proto_.mutable_signature()->set_name(function_.name);
    for (const Output& argument : arguments) arguments_[Key(argument)] = AddArgument(argument);
  }

  // Adds the nodes from `first_id` on.
  void AddNodes(int first_id) {
    tensorflow::GraphDef exported;
    ExportGraph(graph_.graph(), &exported, first_id);
    for (tensorflow::NodeDef& node : *exported.mutable_node()) {
      const Node& original = *graph_.graph().FindNode(node.name());
      if (arguments_.contains(Key(graph_.OutputOf(&original)))) continue;
      node.clear_device();
      for (int i = 0; i < original.num_inputs(); ++i) {
        const Endpoint input = original.input(i);
        node.set_input(i, NameOf(graph_.OutputOf(input.node, input.index)));
      }
      RenameControlInputs(original, &node);
      NoteRandom(original);
      NoteLines(original);
      node.mutable_attr()->erase(kLinesAttr);
      *proto_.add_node_def() = std::move(node);
    }
  }

  void AddResult(const Output& result) {
    const std::string name = StrCat("result ", proto_.signature().output_arg_size());
    tensorflow::OpDef::ArgDef* const arg = proto_.mutable_signature()->add_output_arg();
    arg->set_name(name);
    arg->set_type(ProtoType(result.dtype()));
    (*proto_.mutable_ret())[name] = NameOf(result);
    function_.results.types.push_back(result.dtype());
    function_.results.shapes.push_back(result.shape());
  }

  // Returns the function as a serialized library. Equal functions have equal bytes.
  std::string Finish() {
    tensorflow::FunctionDefLibrary library;
    *library.add_function() = std::move(proto_);
    return DeterministicBytes(library);
  }

 private:
  static std::pair<int, int> Key(const Output& output) { return {output.node, output.index}; }

  // Adds an argument, and returns its name, which no node has.
  std::string AddArgument(const Output& value) {
    tensorflow::OpDef::ArgDef* const arg = proto_.mutable_signature()->add_input_arg();
    arg->set_name(StrCat("argument ", proto_.signature().input_arg_size() - 1));
    arg->set_type(ProtoType(value.dtype()));
    return arg->name();
  }

  // Returns the name of a tensor within the function. If the tensor is from outside, adds an
  // argument for it.
  std::string NameOf(const Output& output) {
    const auto argument = arguments_.find(Key(output));
    if (argument != arguments_.end()) return argument->second;
    if (context_.Owns(output.node)) return output.name();
    function_.captured.push_back(output);
    return arguments_[Key(output)] = AddArgument(output);
  }

  // Gives the control inputs of `node` that are arguments the names that they have in the function.
  // Control inputs follow the other inputs.
  void RenameControlInputs(const Node& original, tensorflow::NodeDef* node) {
    int next = original.num_inputs();
    for (const Node* const before : original.control_inputs()) {
      const auto argument = arguments_.find(Key(graph_.OutputOf(before)));
      if (argument != arguments_.end()) node->set_input(next, StrCat("^", argument->second));
      ++next;
    }
  }

  void NoteRandom(const Node& node) {
    const int64_t* const seed = node.attr<int64_t>("seed");
    const int64_t* const seed2 = node.attr<int64_t>("seed2");
    if (!node.op().stateful || seed == nullptr || seed2 == nullptr) return;
    const std::string text = StrCat("'", node.name(), "' (", node.op_name(), ")");
    function_.random = text;
    if (*seed == 0 && *seed2 == 0) function_.unseeded = text;
  }

  void NoteLines(const Node& node) {
    const SourceLine line = graph_.SourceLineOf(node);
    if (line.file != nullptr) {
      function_.lines.push_back(StrCat(node.name(), "\n", line.file, "\n", line.line));
    }
    const auto* const nested = node.attr<std::vector<std::string>>(kLinesAttr);
    if (nested == nullptr) return;
    function_.lines.insert(function_.lines.end(), nested->begin(), nested->end());
  }

  GraphBuilder& graph_;
  const FunctionContext& context_;
  GraphFunction& function_;
  tensorflow::FunctionDef proto_;
  std::map<std::pair<int, int>, std::string> arguments_;  // names, by node and output
};

// Checks the results of `body`, and that all nodes that it has built are in the function.
Status CheckBuilt(const GraphBuilder& graph, const FunctionContext& context, int first_id,
                  const Outputs& results, const std::string& name) {
  if (results.empty()) return InvalidArgument("function '", name, "' returns no tensor");
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].sink == &graph && graph.NodeOf(results[i]) != nullptr) continue;
    return InvalidArgument("function '", name, "': result ", i, " is no tensor of this graph");
  }
  for (int id = first_id; id < graph.graph().max_id(); ++id) {
    const Node* const node = graph.graph().node(id);
    if (node == nullptr || context.Owns(id)) continue;
    return InvalidArgument("function '", name, "' makes '", node->name(), "' (", node->op_name(),
                           "), which cannot be in a function; make it before");
  }
  return OkStatus();
}

void RemoveNodes(Graph& graph, int first_id) {
  std::vector<Node*> nodes;
  for (int id = first_id; id < graph.max_id(); ++id) {
    if (Node* const node = graph.node(id)) nodes.push_back(node);
  }
  // Disconnects all inputs before it removes nodes, because loops have edges in both directions.
  // Disconnecting cannot fail.
  for (Node* const node : nodes) {
    for (int i = 0; i < node->num_inputs(); ++i) graph.SetInput(node, i, {}).IgnoreError();
  }
  for (Node* const node : nodes) graph.RemoveNode(node);
}

}  // namespace

GraphFunction GraphFunction::Build(GraphBuilder& graph, string_view name,
                                   const TensorSpecs& arguments, const Body& body,
                                   SourceLine line) {
  GraphFunction function;
  if (!graph.status().ok()) return function;
  const int first_id = graph.graph().max_id();
  const auto scope = graph.NameScope(name);
  function.name = std::string(absl::StripSuffix(graph.name_scope(), "/"));
  FunctionContext context(graph, function.name, line);
  const auto inside = graph.ContextScope(&context);
  Outputs placeholders;
  {
    const auto line_scope = graph.SourceLineScope(line);
    for (size_t i = 0; i < arguments.size(); ++i) {
      placeholders.push_back(CallIn(graph, "PlaceholderV2", {},
                                    {{"dtype", arguments.types[i]}, {"shape", arguments.shapes[i]}},
                                    "argument"));
    }
  }
  if (!graph.status().ok()) return function;
  Outputs results = body(placeholders);
  Status status = graph.status();
  if (status.ok()) {
    status = MadeAt(CheckBuilt(graph, context, first_id, results, function.name), line);
  }
  for (size_t i = 0; status.ok() && i < results.size(); ++i) status = context.Import(&results[i]);
  if (!status.ok()) {
    graph.Fail(status);
    return function;
  }
  Writer writer(graph, context, placeholders, &function);
  writer.AddNodes(first_id);
  for (const Output& result : results) writer.AddResult(result);
  function.library = writer.Finish();
  RemoveNodes(graph.mutable_graph(), first_id);
  return function;
}

Attrs GraphFunction::AttrsOf(const std::string& attr) const {
  return {{attr, FunctionName{.name = name, .attrs = std::make_shared<Attrs>()}},
          {kFunctionsAttr, library},
          {kLinesAttr, lines}};
}

Status WithFunctionLine(const GraphBuilder& graph, const Status& status) {
  const std::string failed = FailedNode(status);
  string_view name = failed;
  if (!absl::ConsumePrefix(&name, kCallPrefix)) return status;
  for (const Node* node : graph.graph().nodes()) {
    const auto* const lines = node->attr<std::vector<std::string>>(kLinesAttr);
    if (lines == nullptr) continue;
    for (const std::string& line : *lines) {
      const std::vector<std::string> parts = absl::StrSplit(line, '\n');
      int number = 0;
      if (parts.size() != 3 || parts[0] != name || !absl::SimpleAtoi(parts[2], &number)) continue;
      return MadeAt(status, {.file = parts[1].c_str(), .line = number});
    }
  }
  return status;
}

}  // namespace penstock::client
