// SPDX-License-Identifier: Apache-2.0
//
// Implements the functions of Dataset that transform another dataset.
#include "client/dataset.h"

#include <utility>

#include "client/dataset_node.h"

namespace penstock::client {
namespace {

// The graph-level seed that tf.data uses if the program sets none. With it, shuffles with the same
// seed give the same order as in tf.data.
constexpr int64_t kProgramSeed = 87654321;

// Returns the most specific shape that includes `a` and `b`.
PartialShape CommonShape(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank() || a.rank() != b.rank()) return {};
  PartialShape general = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) != b.dim(i)) general.set_dim(i, PartialShape::kUnknown);
  }
  return general;
}

// A function that returns a dataset for each element, and the types and shapes of the elements of
// these datasets.
struct Nest {
  GraphFunction function;
  TensorSpecs elements;
};
Nest NestOf(DatasetNode& node, const Dataset& input, const Dataset::NestFunction& fn,
            bool parallel) {
  Nest nest;
  const auto body = [&](const Outputs& components) {
    const Dataset made = fn(components);
    nest.elements = made.elements();
    node.InheritRepeatable(made);
    return Outputs{made.variant()};
  };
  nest.function = node.Function(input.elements(), body, parallel);
  return nest;
}

Dataset MapBy(DatasetNode& node, const Dataset& input, const GraphFunction& function,
              string_view op, const Outputs& calls, Attrs more) {
  Attrs attrs = DatasetNode::Spec(function.results, function.AttrsOf("f"));
  attrs.merge(more);
  std::vector<NodeInput> inputs = {input.variant(), function.captured};
  inputs.insert(inputs.end(), calls.begin(), calls.end());
  return node.Make(op, inputs, std::move(attrs), function.results);
}

}  // namespace

Dataset Dataset::Map(const MapFunction& fn, Line line) const {
  DatasetNode node(*this, "map", line);
  const GraphFunction function = node.Function(elements_, fn);
  return MapBy(node, *this, function, "MapDataset", {}, {{"preserve_cardinality", true}});
}

Dataset Dataset::ParallelMap(const MapFunction& fn, int64_t num_parallel_calls, Line line) const {
  DatasetNode node(*this, "parallel_map", line);
  if (num_parallel_calls != -1) node.AtLeast("num_parallel_calls", num_parallel_calls, 1);
  const GraphFunction function = node.Function(elements_, fn, /*parallel=*/true);
  return MapBy(node, *this, function, "ParallelMapDatasetV2", {node.Number(num_parallel_calls)},
               {{"deterministic", "true"}, {"preserve_cardinality", true}});
}

Dataset Dataset::FlatMap(const NestFunction& fn, Line line) const {
  DatasetNode node(*this, "flat_map", line);
  const auto [function, elements] = NestOf(node, *this, fn, /*parallel=*/false);
  return node.Make("FlatMapDataset", {variant_, function.captured},
                   DatasetNode::Spec(elements, function.AttrsOf("f")), elements);
}

Dataset Dataset::Interleave(const NestFunction& fn, const InterleaveOptions& options,
                            Line line) const {
  DatasetNode node(*this, "interleave", line);
  const bool parallel = options.num_parallel_calls != 0;
  if (options.cycle_length != -1) node.AtLeast("cycle_length", options.cycle_length, 1);
  node.AtLeast("block_length", options.block_length, 1);
  node.AtLeast("num_parallel_calls", options.num_parallel_calls, -1);
  const auto [function, elements] = NestOf(node, *this, fn, parallel);
  Attrs attrs = DatasetNode::Spec(elements, function.AttrsOf("f"));
  std::vector<NodeInput> inputs = {variant_, function.captured, node.Number(options.cycle_length),
                                   node.Number(options.block_length)};
  if (!parallel) return node.Make("InterleaveDataset", inputs, std::move(attrs), elements);
  attrs["deterministic"] = "true";
  inputs.push_back(node.Number(options.num_parallel_calls));
  return node.Make("ParallelInterleaveDatasetV3", inputs, std::move(attrs), elements);
}

Dataset Dataset::Filter(const Predicate& predicate, Line line) const {
  DatasetNode node(*this, "filter", line);
  const auto body = [&](const Outputs& components) { return Outputs{predicate(components)}; };
  const GraphFunction function = node.Function(elements_, body);
  if (function.results.size() == 1) {
    const DType type = function.results.types[0];
    const PartialShape& shape = function.results.shapes[0];
    if (type != DType::kBool || shape.rank() > 0) {
      node.Fail("the function must return a bool, returns ", Name(type), shape.ToString());
    }
  }
  return node.Make("FilterDataset", {variant_, function.captured},
                   DatasetNode::Spec(elements_, function.AttrsOf("predicate")), elements_);
}

Dataset Dataset::Shuffle(int64_t buffer_size, int64_t seed, Line line) const {
  DatasetNode node(*this, "shuffle", line);
  node.AtLeast("buffer_size", buffer_size, 1);
  if (seed == 0)
    node.NotRepeatable(StrCat("'", graph_->name_scope(), "ShuffleDataset' has no seed"));
  const Output size = node.Number(buffer_size), first = node.Number(seed == 0 ? 0 : kProgramSeed);
  return node.MakeLike(*this, "ShuffleDataset", {size, first, node.Number(seed)});
}

Dataset Dataset::Repeat(int64_t count, Line line) const {
  DatasetNode node(*this, "repeat", line);
  node.AtLeast("count", count, -1);
  return node.MakeLike(*this, "RepeatDataset", {node.Number(count)});
}

Dataset Dataset::Take(int64_t count, Line line) const {
  DatasetNode node(*this, "take", line);
  node.AtLeast("count", count, -1);
  return node.MakeLike(*this, "TakeDataset", {node.Number(count)});
}

Dataset Dataset::Skip(int64_t count, Line line) const {
  DatasetNode node(*this, "skip", line);
  node.AtLeast("count", count, -1);
  return node.MakeLike(*this, "SkipDataset", {node.Number(count)});
}

Dataset Dataset::Shard(int64_t shards, int64_t index, Line line) const {
  DatasetNode node(*this, "shard", line);
  node.AtLeast("shards", shards, 1);
  if (index < 0 || index >= shards) node.Fail("index must be in [0, ", shards, "), is ", index);
  return node.MakeLike(*this, "ShardDataset", {node.Number(shards), node.Number(index)});
}

Dataset Dataset::Concatenate(const Dataset& next, Line line) const {
  DatasetNode node(*this, "concatenate", line);
  node.InheritRepeatable(next);
  TensorSpecs elements = elements_;
  if (next.types() == types()) {
    for (size_t i = 0; i < elements.size(); ++i) {
      elements.shapes[i] = CommonShape(elements.shapes[i], next.shapes()[i]);
    }
  } else {
    node.Fail("the types of the elements must be equal, are ", AttrValue(types()).ToString(),
              " and ", AttrValue(next.types()).ToString());
  }
  return node.Make("ConcatenateDataset", {variant_, next.variant()}, DatasetNode::Spec(elements),
                   elements);
}

Dataset Dataset::Cache(Line line) const {
  DatasetNode node(*this, "cache", line);
  return node.MakeLike(*this, "CacheDataset", {node.Text("")});
}

Dataset Dataset::Prefetch(int64_t buffer_size, Line line) const {
  DatasetNode node(*this, "prefetch", line);
  node.AtLeast("buffer_size", buffer_size, -1);
  return node.MakeLike(*this, "PrefetchDataset", {node.Number(buffer_size)});
}

}  // namespace penstock::client
