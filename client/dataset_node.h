// SPDX-License-Identifier: Apache-2.0
//
// DatasetNode: adds the nodes of one call of a member function of Dataset. The nodes are in a name
// scope, on the device of the input, and have the line of the call. Internal to dataset.h and
// dataset_iterator.h.
#pragma once

#include <string>
#include <vector>

#include "client/dataset.h"

namespace penstock::client {

class DatasetNode {
 public:
  // Makes the node of a source. `name` is the name of the scope.
  DatasetNode(GraphBuilder& graph, string_view name, SourceLine line)
      : graph_(graph), line_(line), scope_(graph.NameScope(name)) {}
  // Makes the node of a dataset that reads `input`.
  DatasetNode(const Dataset& input, string_view name, SourceLine line)
      : DatasetNode(input.graph(), name, line) {
    PlaceBeside(input);
    InheritRepeatable(input);
  }

  // Sets the graph's error to an InvalidArgument that names the scope and the line.
  template <class... Parts>
  void Fail(const Parts&... parts) {
    const std::string scope = graph_.name_scope();  // ends in '/'
    graph_.Fail(MadeAt(InvalidArgument(scope.substr(0, scope.size() - 1), ": ", parts...), line_));
  }
  // Fails if `value` is less than `min`.
  void AtLeast(const char* name, int64_t value, int64_t min);
  Output Value(Tensor value);
  Output Number(int64_t value) { return Value(Tensor::Scalar(value)); }
  Output Text(std::string value) { return Value(Tensor::Scalar(std::move(value))); }

  // Makes a function of `body`, whose arguments are the components of an element of `elements`.
  // `parallel`: whether the runtime may run several calls of the function concurrently.
  GraphFunction Function(const TensorSpecs& elements, const GraphFunction::Body& body,
                         bool parallel = false);
  // Places the new dataset on the device of `input`.
  void PlaceBeside(const Dataset& input) { input_ = input.variant(); }
  // Makes the new dataset not repeatable if `input` is not.
  void InheritRepeatable(const Dataset& input);
  // Marks the new dataset as not repeatable, with the cause `why`.
  void NotRepeatable(const std::string& why);

  // The text of the error if Exists returns false for a dataset.
  static constexpr char kNotInGraphText[] =
      "the dataset does not exist here: it was made in a function, or for another program";
  // Returns whether `variant` is an output of a node of `graph`. The nodes of a function exist only
  // until it is complete.
  static bool Exists(const GraphBuilder& graph, Output variant) {
    return variant.sink == &graph && graph.NodeOf(variant) != nullptr;
  }

  // Returns attributes with the types and shapes of `elements`, and `more`.
  static Attrs Spec(const TensorSpecs& elements, Attrs more = {});
  Dataset Make(string_view op, const std::vector<NodeInput>& inputs, Attrs attrs,
               TensorSpecs elements);
  // Makes a dataset whose elements have the types and shapes of those of `input`.
  Dataset MakeLike(const Dataset& input, string_view op, std::vector<NodeInput> more,
                   Attrs attrs = {});

 private:
  GraphBuilder& graph_;
  const SourceLine line_;
  const GraphBuilder::Scope scope_;
  Output input_;  // the new node is colocated with it; not valid for a source
  Status repeatable_;
  std::string random_;
};

}  // namespace penstock::client
