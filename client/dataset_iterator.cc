// SPDX-License-Identifier: Apache-2.0
#include "client/dataset_iterator.h"

#include "client/dataset_node.h"

namespace penstock::client {
namespace {

// Returns whether each shape that `inner` allows is one that `outer` allows.
bool Includes(const PartialShape& outer, const PartialShape& inner) {
  const auto merged = outer.Merge(inner);
  return merged.ok() && *merged == inner;
}

Status CheckSame(const TensorSpecs& own, const TensorSpecs& other) {
  bool same = own.types == other.types;
  for (size_t i = 0; same && i < own.size(); ++i) same = Includes(own.shapes[i], other.shapes[i]);
  if (same) return OkStatus();
  return InvalidArgument("an iterator over elements of the types ", AttrValue(own.types).ToString(),
                         " and shapes ", AttrValue(own.shapes).ToString(), " cannot read those of ",
                         AttrValue(other.types).ToString(), " and ",
                         AttrValue(other.shapes).ToString());
}

}  // namespace

Iterator::Iterator(const Dataset& dataset, SourceLine line)
    : dataset_(dataset), handle_{&dataset.graph()}, initializer_{&dataset.graph()} {
  GraphBuilder& graph = dataset.graph();
  if (!graph.status().ok()) return;
  if (graph.context() != nullptr) {
    graph.Fail(MadeAt(InvalidArgument("an iterator is made inside of a function, a branch or a ",
                                      "loop; make it outside"),
                      line));
    return;
  }
  if (!DatasetNode::Exists(graph, dataset.variant())) {
    graph.Fail(MadeAt(InvalidArgument("iterator: ", DatasetNode::kNotInGraphText), line));
    return;
  }
  const auto scope = graph.NameScope("iterator");
  const auto device_scope = graph.ColocateWith(dataset.variant());
  const auto unordered = graph.ClearControlDependencies();
  const auto line_scope = graph.SourceLineScope(line);
  handle_ = CallIn(graph, "IteratorV2", {},
                   {{"shared_name", ""},
                    {"container", ""},
                    {"output_types", dataset.types()},
                    {"output_shapes", dataset.shapes()}});
  initializer_ = CallIn(graph, "MakeIterator", {dataset.variant(), handle_});
}

Outputs Iterator::GetNext(SourceLine line) const {
  GraphBuilder& graph = dataset_.graph();
  const auto line_scope = graph.SourceLineScope(line);
  const auto device_scope = graph.ColocateWith(handle_);  // invalid only if the graph has an error
  Outputs next = CallN("IteratorGetNext", {handle_},
                       {{"output_types", dataset_.types()}, {"output_shapes", dataset_.shapes()}});
  // If the graph has an error, CallN may return another number of outputs.
  if (next.size() < dataset_.elements().size()) next.resize(dataset_.elements().size(), next[0]);
  return next;
}

Output Iterator::InitializerFor(const Dataset& other, SourceLine line) const {
  GraphBuilder& graph = dataset_.graph();
  if (!graph.status().ok()) return {&graph, -1, 0};
  const Status same = CheckSame(dataset_.elements(), other.elements());
  if (!same.ok()) graph.Fail(MadeAt(same, line));
  const auto line_scope = graph.SourceLineScope(line);
  return CallIn(graph, "MakeIterator", {other.variant(), handle_});
}

}  // namespace penstock::client
