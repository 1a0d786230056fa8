// SPDX-License-Identifier: Apache-2.0
//
// Implements FoldL, FoldR, Scan and MapFn: loops over the slices of tensors.
#include "client/control_flow.h"
#include "client/ops/line_scope.h"
#include "client/tensor_array.h"
#include "core/op/gradient.h"

namespace penstock::client {
namespace {

Output Int(GraphBuilder& graph, int32_t value) {
  return Constant(graph, Tensor::Scalar<int32_t>(value));
}

Output Zero(GraphBuilder& graph, SourceLine line) {
  const CallerLine source(graph, line);
  return Int(graph, 0);
}

// The slices of several tensors. One index gives a slice of each.
class Slices {
 public:
  Slices(GraphBuilder& graph, const Outputs& elems, SourceLine line) {
    const CallerLine source(graph, line);
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

// The TensorArrays that a loop over slices writes, one for each result.
class Results {
 public:
  struct Element {
    DType dtype;
    PartialShape shape = {};
  };
  Results(GraphBuilder& graph, Output size, const std::vector<Element>& elements, SourceLine line) {
    const CallerLine source(graph, line);
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
            const WhileOptions& options, SourceLine line) {
  Outputs variables = initial;
  const Outputs flows = results.flows();
  variables.insert(variables.end(), flows.begin(), flows.end());
  variables.push_back(Zero(graph, line));
  return While(
      graph, variables,
      [&](const Outputs& v) {
        const CallerLine source(graph, line);
        return Less(v.back(), slices.size());
      },
      [&](const Outputs& v) {
        Output index = v.back();
        Outputs slice;
        {
          const CallerLine source(graph, line);
          if (reverse) index = slices.size() - v.back() - 1;
          slice = slices.Read(index);
        }
        Outputs next = fn({v.begin(), v.begin() + initial.size()}, slice);
        const CallerLine source(graph, line);
        if (!HasCount(graph, next, initial.size())) return v;
        const Outputs after = results.Write(v.data() + initial.size(), index, next);
        next.insert(next.end(), after.begin(), after.end());
        next.push_back(v.back() + 1);
        return next;
      },
      WithScalarVariables(options, flows.size() + 1), line);
}

Outputs Fold(GraphBuilder& graph, const Outputs& elems, const Outputs& initial,
             const FoldFunction& fn, bool reverse, const WhileOptions& options, SourceLine line) {
  const Slices slices(graph, elems, line);
  const Results none(graph, slices.size(), {}, line);
  Outputs last = Run(graph, slices, initial, fn, reverse, none, options, line);
  last.resize(initial.size());
  return last;
}

}  // namespace

Outputs FoldL(GraphBuilder& graph, const Outputs& elems, const Outputs& initial,
              const FoldFunction& fn, const WhileOptions& options, SourceLine line) {
  return Fold(graph, elems, initial, fn, /*reverse=*/false, options, line);
}

Outputs FoldR(GraphBuilder& graph, const Outputs& elems, const Outputs& initial,
              const FoldFunction& fn, const WhileOptions& options, SourceLine line) {
  return Fold(graph, elems, initial, fn, /*reverse=*/true, options, line);
}

Outputs Scan(GraphBuilder& graph, const Outputs& elems, const Outputs& initial,
             const FoldFunction& fn, bool reverse, const WhileOptions& options, SourceLine line) {
  const Slices slices(graph, elems, line);
  std::vector<Results::Element> elements;
  for (size_t i = 0; i < initial.size(); ++i) {
    const bool said = i < options.shape_invariants.size();
    elements.push_back(
        {initial[i].dtype(), said ? options.shape_invariants[i] : initial[i].shape()});
  }
  const Results results(graph, slices.size(), elements, line);
  const Outputs last = Run(graph, slices, initial, fn, reverse, results, options, line);
  const CallerLine source(graph, line);
  return results.Stack(last.data() + initial.size());
}

Outputs MapFn(GraphBuilder& graph, const Outputs& elems, const std::vector<DType>& types,
              const MapFunction& fn, const WhileOptions& options, SourceLine line) {
  const Slices slices(graph, elems, line);
  std::vector<Results::Element> elements;
  for (const DType type : types) elements.push_back({type});
  const Results results(graph, slices.size(), elements, line);
  Outputs variables = results.flows();
  variables.push_back(Zero(graph, line));
  const Outputs last = While(
      graph, variables,
      [&](const Outputs& v) {
        const CallerLine source(graph, line);
        return Less(v.back(), slices.size());
      },
      [&](const Outputs& v) {
        Outputs slice;
        {
          const CallerLine source(graph, line);
          slice = slices.Read(v.back());
        }
        const Outputs values = fn(slice);
        const CallerLine source(graph, line);
        if (!HasCount(graph, values, types.size())) return v;
        Outputs next = results.Write(v.data(), v.back(), values);
        next.push_back(v.back() + 1);
        return next;
      },
      options, line);
  const CallerLine source(graph, line);
  return results.Stack(last.data());
}

}  // namespace penstock::client
