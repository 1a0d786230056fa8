// SPDX-License-Identifier: Apache-2.0
//
// Implements FoldL, FoldR, Scan and MapFn: loops over the slices of tensors.
#include "client/control_flow.h"
#include "client/tensor_array.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

Output Int(GraphBuilder& graph, int32_t value) {
  return Constant(graph, Tensor::Scalar<int32_t>(value));
}

// The slices of several tensors, accessed by a common index.
class Slices {
 public:
  Slices(GraphBuilder& graph, const Outputs& elems) {
    for (const Output& each : elems) arrays_.push_back(TensorArray::Unstack(graph, each));
    if (elems.empty()) {
      graph.Fail(InvalidArgument("a function over slices needs something to slice"));
    } else {
      size_ = Gather(ShapeOf(elems[0]), Int(graph, 0), Int(graph, 0));
    }
  }
  Output size() const { return size_; }
  Outputs Read(Output index) const {
    Outputs values;
    for (const TensorArray& array : arrays_) values.push_back(array.Read(index));
    return values;
  }

 private:
  std::vector<TensorArray> arrays_;
  Output size_;
};

// The arrays that a loop over slices writes.
class Results {
 public:
  struct Element {
    DType dtype;
    PartialShape shape = {};
  };
  Results(GraphBuilder& graph, Output size, const std::vector<Element>& elements) {
    for (const Element& each : elements) {
      arrays_.emplace_back(graph, size, each.dtype,
                           TensorArrayOptions{.element_shape = each.shape});
    }
  }
  Outputs flows() const {
    Outputs flows;
    for (const TensorArray& array : arrays_) flows.push_back(array.flow());
    return flows;
  }
  // Writes values[k] to array k, for each k, and returns the arrays' new flows.
  Outputs Write(const Output* flows, Output index, const Outputs& values) const {
    Outputs after;
    for (size_t i = 0; i < arrays_.size(); ++i) {
      after.push_back(arrays_[i].At(flows[i]).Write(index, values[i]).flow());
    }
    return after;
  }
  Outputs Stack(const Output* flows) const {
    Outputs stacked;
    for (size_t i = 0; i < arrays_.size(); ++i) stacked.push_back(arrays_[i].At(flows[i]).Stack());
    return stacked;
  }

 private:
  std::vector<TensorArray> arrays_;
};

bool HasCount(GraphBuilder& graph, const Outputs& values, size_t wanted) {
  if (!graph.status().ok()) return false;
  if (values.size() == wanted) return true;
  graph.Fail(InvalidArgument("loop '", graph.name_scope(), "': the function gives ", values.size(),
                             " tensors, must give ", wanted));
  return false;
}

// Returns `options` for a loop that has `more` scalar variables after the accumulators: if the
// options give the accumulators' shapes, adds those of the scalars.
WhileOptions WithScalarVariables(const WhileOptions& options, size_t more) {
  WhileOptions extended = options;
  if (!options.shape_invariants.empty()) {
    extended.shape_invariants.insert(extended.shape_invariants.end(), more, PartialShape::Scalar());
  }
  return extended;
}

// Builds the loop, and returns the final values of its variables: the accumulators, the flows of
// `results`, and the number of slices done.
Outputs Run(GraphBuilder& graph, const Slices& slices, const Outputs& initial,
            const FoldFunction& fn, bool reverse, const Results& results,
            const WhileOptions& options) {
  Outputs variables = initial;
  const Outputs flows = results.flows();
  variables.insert(variables.end(), flows.begin(), flows.end());
  variables.push_back(Int(graph, 0));
  return While(
      graph, variables, [&](const Outputs& v) { return Less(v.back(), slices.size()); },
      [&](const Outputs& v) {
        const Output index = reverse ? slices.size() - v.back() - 1 : v.back();
        const Outputs before(v.begin(), v.begin() + initial.size());
        Outputs next = fn(before, slices.Read(index));
        if (!HasCount(graph, next, initial.size())) return v;
        const Outputs after = results.Write(v.data() + initial.size(), index, next);
        next.insert(next.end(), after.begin(), after.end());
        next.push_back(v.back() + 1);
        return next;
      },
      WithScalarVariables(options, flows.size() + 1));
}

Outputs Fold(GraphBuilder& graph, const Outputs& elems, const Outputs& initial,
             const FoldFunction& fn, bool reverse, const WhileOptions& options) {
  const Slices slices(graph, elems);
  Outputs last =
      Run(graph, slices, initial, fn, reverse, Results(graph, slices.size(), {}), options);
  last.resize(initial.size());
  return last;
}

}  // namespace

Outputs FoldL(GraphBuilder& graph, const Outputs& elems, const Outputs& initial,
              const FoldFunction& fn, const WhileOptions& options) {
  return Fold(graph, elems, initial, fn, /*reverse=*/false, options);
}

Outputs FoldR(GraphBuilder& graph, const Outputs& elems, const Outputs& initial,
              const FoldFunction& fn, const WhileOptions& options) {
  return Fold(graph, elems, initial, fn, /*reverse=*/true, options);
}

Outputs Scan(GraphBuilder& graph, const Outputs& elems, const Outputs& initial,
             const FoldFunction& fn, bool reverse, const WhileOptions& options) {
  const Slices slices(graph, elems);
  std::vector<Results::Element> elements;
  for (size_t i = 0; i < initial.size(); ++i) {
    const bool said = i < options.shape_invariants.size();
    elements.push_back(
        {initial[i].dtype(), said ? options.shape_invariants[i] : initial[i].shape()});
  }
  const Results results(graph, slices.size(), elements);
  const Outputs last = Run(graph, slices, initial, fn, reverse, results, options);
  return results.Stack(last.data() + initial.size());
}

Outputs MapFn(GraphBuilder& graph, const Outputs& elems, const std::vector<DType>& types,
              const MapFunction& fn, const WhileOptions& options) {
  const Slices slices(graph, elems);
  std::vector<Results::Element> elements;
  for (const DType type : types) elements.push_back({type});
  const Results results(graph, slices.size(), elements);
  Outputs variables = results.flows();
  variables.push_back(Int(graph, 0));
  const Outputs last = While(
      graph, variables, [&](const Outputs& v) { return Less(v.back(), slices.size()); },
      [&](const Outputs& v) {
        const Outputs values = fn(slices.Read(v.back()));
        if (!HasCount(graph, values, types.size())) return v;
        Outputs next = results.Write(v.data(), v.back(), values);
        next.push_back(v.back() + 1);
        return next;
      },
      options);
  return results.Stack(last.data());
}

}  // namespace penstock::client
