// SPDX-License-Identifier: Apache-2.0
#include "core/graph/builder.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "core/base/check.h"
#include "core/base/error_origin.h"
#include "core/graph/infer_shapes.h"
#include "core/op/device_name.h"
#include "core/op/private_attrs.h"

namespace penstock {

namespace {

constexpr char kMadeAt[] = " (made at ";

// The combined settings of the open scopes. Opening a scope copies them and changes the copy.
struct Scopes {
  std::string prefix;  // "a/b/"
  std::vector<std::variant<DeviceName, GraphBuilder::DeviceFunction>> devices;
  std::vector<Node*> control_inputs;
  std::vector<std::string> colocate;  // "loc:@x"
  std::string colocated_device;
  SourceLine line;  // the source line of new nodes, if it is known
  GraphBuilder::Context* context = nullptr;
  std::shared_ptr<const Scopes> outside;  // the settings outside of the context's scope
};

// Returns `inner` with the components that it lacks taken from `outer`.
DeviceName Override(const DeviceName& outer, const DeviceName& inner) {
  DeviceName merged = inner;
  if (!merged.job) merged.job = outer.job;
  if (!merged.replica) merged.replica = outer.replica;
  if (!merged.task) merged.task = outer.task;
  if (!merged.type) merged.type = outer.type;
  if (!merged.index) merged.index = outer.index;
  return merged;
}

// Applies the device scopes from the innermost to the outermost.
StatusOr<std::string> DeviceFor(const Scopes& scopes, Graph::NodeSpec* spec) {
  if (scopes.devices.empty()) return scopes.colocated_device;
  DeviceName device;
  for (auto scope = scopes.devices.rbegin(); scope != scopes.devices.rend(); ++scope) {
    if (const auto* name = std::get_if<DeviceName>(&*scope)) {
      device = Override(*name, device);
    } else {
      spec->device = device.ToString();
      ASSIGN_OR_RETURN(device,
                       DeviceName::Parse(std::get<GraphBuilder::DeviceFunction>(*scope)(*spec)));
    }
  }
  if (!scopes.colocated_device.empty()) {
    ASSIGN_OR_RETURN(const DeviceName outer, DeviceName::Parse(scopes.colocated_device));
    device = Override(outer, device);
  }
  return device.ToString();
}

void AddColocation(const std::vector<std::string>& groups, Attrs* attrs) {
  if (groups.empty()) return;
  std::vector<std::string> all = groups;
  if (const auto it = attrs->find(kColocationAttr); it != attrs->end()) {
    if (const auto* given = it->second.get<std::vector<std::string>>()) {
      all.insert(all.end(), given->begin(), given->end());
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  (*attrs)[kColocationAttr] = std::move(all);
}

}  // namespace

struct GraphBuilder::State {
  explicit State(Graph g) : graph(std::move(g)) {}

  // Nodes and name scopes share one set of names.
  std::string UniqueName(const std::string& base) {
    const auto is_taken = [this](const std::string& name) {
      return graph.FindNode(name) != nullptr || scope_names.contains(name);
    };
    if (!is_taken(base)) return base;
    int& suffix = suffixes[base];
    std::string name;
    do {
      name = StrCat(base, "_", ++suffix);
    } while (is_taken(name));
    return name;
  }

  Graph graph;
  ShapeInference shapes{graph};
  Status status;
  std::vector<Scopes> scopes{1};  // the last element has the settings in force
  SourceLine next_line;           // the source line of the next node
  std::vector<SourceLine> lines;  // by node id; may be shorter
  absl::flat_hash_set<std::string> scope_names;
  absl::flat_hash_map<std::string, int> suffixes;
};

GraphBuilder::GraphBuilder(const Registry& registry) : GraphBuilder(Graph(registry)) {}
GraphBuilder::GraphBuilder(Graph graph) : state_(std::make_unique<State>(std::move(graph))) {}
GraphBuilder::~GraphBuilder() = default;

StatusOr<int> GraphBuilder::TryAddNode(NewNode node) {
  const Scopes& scopes = state_->scopes.back();
  const string_view op = node.op;
  const std::vector<NodeInput>& inputs = node.inputs;
  const string_view name = node.name.empty() ? op : string_view(node.name);
  Graph::NodeSpec spec{.name = state_->UniqueName(StrCat(scopes.prefix, name)),
                       .op = std::string(op)};
  const auto at_node = [&spec](const Status& status) {
    return Annotate(status, StrCat("node '", spec.name, "' (op ", spec.op, ")"));
  };
  const StatusOr<const OpDef*> def = state_->graph.registry().GetOp(op);
  if (!def.ok()) return at_node(def.status());

  std::vector<std::vector<EdgeType>> types(inputs.size());
  std::vector<bool> is_list(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    is_list[i] = inputs[i].list;
    for (const Output& output : inputs[i].outputs) {
      if (!output.valid()) return at_node(InvalidArgument("argument ", i, " is not a tensor"));
      if (output.sink != this) {
        return at_node(InvalidArgument("argument ", i, " is of another graph"));
      }
      const Node* source = NodeOf(output);
      if (source == nullptr || output.index < 0 || output.index >= source->num_outputs()) {
        return at_node(InvalidArgument("argument ", i, " is output ", output.index, " of node ",
                                       output.node, ", which does not exist here"));
      }
      types[i].push_back(source->output_type(output.index));
      spec.inputs.push_back({NodeOf(output), output.index});
    }
  }
  RETURN_IF_ERROR(at_node(InferAttrs(**def, types, is_list, &node.attrs)));
  AddColocation(scopes.colocate, &node.attrs);
  spec.attrs = std::move(node.attrs);
  spec.control_inputs = std::move(node.control_inputs);
  StatusOr<std::string> device = DeviceFor(scopes, &spec);
  if (!device.ok()) return at_node(device.status());
  spec.device = *std::move(device);

  RETURN_IF_ERROR(state_->shapes.Update());  // infers nodes added through mutable_graph()
  ASSIGN_OR_RETURN(Node * added, state_->graph.AddNode(std::move(spec)));
  const Status shapes = state_->shapes.Update();
  if (!shapes.ok()) {
    state_->graph.RemoveNode(added);
    return shapes;
  }
  return added->id();
}

int GraphBuilder::AddNode(string_view op, const std::vector<NodeInput>& inputs, Attrs attrs,
                          string_view name) {
  if (!state_->status.ok()) return -1;
  SourceLine line = std::exchange(state_->next_line, {});
  if (const SourceLine fixed = state_->scopes.back().line; fixed.file != nullptr) line = fixed;
  NewNode node{.op = op,
               .inputs = inputs,
               .attrs = std::move(attrs),
               .name = std::string(name),
               .control_inputs = state_->scopes.back().control_inputs};
  Context* const context = state_->scopes.back().context;
  if (context != nullptr) {
    const Scope line_scope =
        SourceLineScope(line);  // nodes that Adapt adds get the line of this node
    if (const Status status = context->Adapt(&node); !status.ok()) Fail(status);
    if (!state_->status.ok()) return -1;
    if (node.existing >= 0) return node.existing;
  }
  const StatusOr<int> id = TryAddNode(std::move(node));
  if (!id.ok()) {
    Fail(MadeAt(id.status(), line));
    return -1;
  }
  if (line.file != nullptr) {
    if (state_->lines.size() <= static_cast<size_t>(*id)) state_->lines.resize(*id + 1);
    state_->lines[*id] = line;
  }
  if (context != nullptr) context->Added(*id);
  return *id;
}

void GraphBuilder::NoteSourceLine(SourceLine line) { state_->next_line = line; }

SourceLine GraphBuilder::SourceLineOf(const Node& node) const {
  const auto id = static_cast<size_t>(node.id());
  return id < state_->lines.size() ? state_->lines[id] : SourceLine();
}

Status MadeAt(const Status& status, SourceLine line) {
  if (status.ok() || line.file == nullptr) return status;
  return WithMessage(status, StrCat(status.message(), kMadeAt, line.file, ":", line.line, ")"));
}

// An Output may outlive its node, if the node was removed through mutable_graph().
int GraphBuilder::num_outputs(int node) const {
  const Node* const n = state_->graph.node(node);
  return n == nullptr ? 0 : n->num_outputs();
}

EdgeType GraphBuilder::output_type(int node, int index) const {
  return index < num_outputs(node) ? state_->graph.node(node)->output_type(index) : EdgeType{};
}

PartialShape GraphBuilder::output_shape(int node, int index) const {
  if (node >= state_->shapes.num_seen()) {
    const Status status = state_->shapes.Update();
    if (state_->status.ok()) state_->status = status;
  }
  return index < num_outputs(node) ? state_->shapes.shape(node, index) : PartialShape();
}

const Tensor* GraphBuilder::output_constant(int node, int index) const {
  Node* source = state_->graph.node(node);
  return source == nullptr ? nullptr : state_->shapes.ConstantOf({source, index});
}

std::string GraphBuilder::output_name(int node, int index) const {
  const Node* const n = state_->graph.node(node);
  return n == nullptr ? "" : StrCat(n->name(), ":", index);
}

Status GraphBuilder::status() const { return state_->status; }

// Appends the line of the innermost SourceLineScope, unless the error names a line.
void GraphBuilder::Fail(Status status) {
  if (!state_->status.ok()) return;
  const bool has_line = absl::StrContains(status.message(), kMadeAt);
  state_->status = has_line ? std::move(status) : MadeAt(status, state_->scopes.back().line);
}

const Graph& GraphBuilder::graph() const { return state_->graph; }
Graph& GraphBuilder::mutable_graph() { return state_->graph; }

Output GraphBuilder::OutputOf(const Node* node, int index) { return {this, node->id(), index}; }

Node* GraphBuilder::NodeOf(Output output) const {
  CHECK(output.sink == this, "output of another graph");
  return output.node < 0 || output.node >= state_->graph.max_id() ? nullptr
                                                                  : state_->graph.node(output.node);
}

GraphBuilder::Scope::Scope(Scope&& other) noexcept
    : builder_(std::exchange(other.builder_, nullptr)) {}

GraphBuilder::Scope::~Scope() {
  if (builder_ != nullptr) builder_->state_->scopes.pop_back();
}

GraphBuilder::Scope GraphBuilder::Open() {
  // Copy first: push_back(back()) would read from the vector that is being reallocated.
  Scopes copy = state_->scopes.back();
  state_->scopes.push_back(std::move(copy));
  return Scope(this);
}

GraphBuilder::Scope GraphBuilder::NameScope(string_view name) {
  Scope scope = Open();
  std::string& prefix = state_->scopes.back().prefix;
  if (name.empty() || absl::EndsWith(name, "/")) {
    prefix = std::string(name);
  } else {
    const std::string unique = state_->UniqueName(StrCat(prefix, name));
    state_->scope_names.insert(unique);
    prefix = StrCat(unique, "/");
  }
  return scope;
}

std::string GraphBuilder::name_scope() const { return state_->scopes.back().prefix; }

GraphBuilder::Scope GraphBuilder::DeviceScope(string_view device) {
  Scope scope = Open();
  StatusOr<DeviceName> parsed = DeviceName::Parse(device);
  if (parsed.ok()) {
    state_->scopes.back().devices.emplace_back(*std::move(parsed));
  } else {
    Fail(Annotate(parsed.status(), "device scope"));
  }
  return scope;
}

GraphBuilder::Scope GraphBuilder::DeviceFunctionScope(DeviceFunction function) {
  Scope scope = Open();
  state_->scopes.back().devices.emplace_back(std::move(function));
  return scope;
}

GraphBuilder::Scope GraphBuilder::ControlDependencies(const std::vector<Output>& after) {
  Scope scope = Open();
  for (const Output& output : after) {
    Node* node = output.valid() && output.sink == this ? NodeOf(output) : nullptr;
    if (node == nullptr) {
      Fail(InvalidArgument("control dependency on something that is no node of this graph"));
    } else {
      state_->scopes.back().control_inputs.push_back(node);
    }
  }
  return scope;
}

GraphBuilder::Scope GraphBuilder::ClearControlDependencies() {
  Scope scope = Open();
  state_->scopes.back().control_inputs.clear();
  return scope;
}

GraphBuilder::Scope GraphBuilder::ColocateWith(Output with) {
  Scope scope = Open();
  Node* node = with.valid() && with.sink == this ? NodeOf(with) : nullptr;
  if (node == nullptr) {
    Fail(InvalidArgument("colocation with something that is no node of this graph"));
    return scope;
  }
  Scopes& now = state_->scopes.back();
  now.devices.clear();
  now.colocated_device = node->requested_device();
  const auto* groups = node->attr<std::vector<std::string>>(kColocationAttr);
  now.colocate =
      groups != nullptr ? *groups : std::vector<std::string>{StrCat(kColocatedWith, node->name())};
  return scope;
}

GraphBuilder::Scope GraphBuilder::SourceLineScope(SourceLine line) {
  Scope scope = Open();
  // Without a known line, that of an enclosing scope stays in force.
  if (line.file != nullptr) state_->scopes.back().line = line;
  return scope;
}

GraphBuilder::Scope GraphBuilder::ContextScope(Context* context) {
  auto outside = std::make_shared<const Scopes>(state_->scopes.back());
  Scope scope = Open();
  Scopes& now = state_->scopes.back();
  now.context = context;
  now.outside = std::move(outside);
  now.control_inputs.clear();
  return scope;
}

GraphBuilder::Scope GraphBuilder::OutsideScope() {
  const std::shared_ptr<const Scopes> outside = state_->scopes.back().outside;
  CHECK(outside != nullptr, "outside of no context");
  const SourceLine line = state_->scopes.back().line;
  Scope scope = Open();
  state_->scopes.back() = *outside;
  state_->scopes.back().line = line;
  state_->scopes.back().control_inputs.clear();
  return scope;
}

GraphBuilder::Scope GraphBuilder::BareScope() {
  Scope scope = Open();
  state_->scopes.back() = Scopes{.prefix = state_->scopes.back().prefix};
  return scope;
}

GraphBuilder::Context* GraphBuilder::context() const { return state_->scopes.back().context; }

}  // namespace penstock
