// SPDX-License-Identifier: Apache-2.0
#include "client/embedding/lookup.h"

#include <utility>

#include "client/embedding/table_view.h"
#include "client/ops/line_scope.h"
#include "core/op/gradient.h"
#include "core/op/private_attrs.h"

namespace penstock::client {
namespace {

Output Scalar(GraphSink& sink, int32_t value) { return Constant(sink, Tensor::Scalar(value)); }
Output Vector(GraphSink& sink, std::vector<int32_t> values) {
  return Constant(sink, Tensor::Vector<int32_t>(std::move(values)));
}

using Places = TableView::Places;

Places PlacesOf(const PartitionedVariable& table, Output ids) {
  const auto count = static_cast<double>(table.parts().size());
  if (table.strategy() == PartitionStrategy::kMod) {
    return {Cast(Call("FloorMod", {ids, ConstantLike(ids, count)}), DType::kInt32), ids / count};
  }
  // An id that is out of range goes to the first or the last part, which does not have the row and
  // reports the error.
  GraphSink& sink = *ids.sink;
  const auto& starts = table.starts();
  const Output bounds = Cast(
      Constant(sink, Tensor::Vector<int64_t>({starts.begin() + 1, starts.end()})), ids.dtype());
  const Output part =
      Call("UpperBound", {ExpandDims(bounds, Scalar(sink, 0)), ExpandDims(ids, Scalar(sink, 0))});
  const Output flat = Reshape(part, Vector(sink, {-1}));
  const Output first = Cast(Constant(sink, Tensor::Vector<int64_t>(starts)), ids.dtype());
  return {flat, ids - Gather(first, flat, Scalar(sink, 0))};
}

Output RowsOfPart(const Variable& part, Output rows) {
  const auto device_scope = part.program().ColocateWith(part.handle());
  if (part.ref()) return Gather(Identity(part), rows, Scalar(*rows.sink, 0));
  return Call("ResourceGather", {part.handle(), rows}, {{"dtype", part.dtype()}});
}

TableView ViewOf(const PartitionedVariable& table) {
  return {
      .program = &table.program(),
      .name = table.name(),
      .shape = table.shape(),
      .parts = static_cast<int>(table.parts().size()),
      .places = [&table](Output ids) { return PlacesOf(table, ids); },
      .rows_of = [&table](int part, Output rows) { return RowsOfPart(table.parts()[part], rows); }};
}

// Returns the rows of `ids`, a vector without repetitions.
Output RowsOf(const TableView& table, Output ids) {
  if (table.parts == 1) return table.rows_of(0, ids);
  GraphSink& sink = *ids.sink;
  const Places places = table.places(ids);
  // kDistinctAttr says that the partitioned ids and their positions have no repetitions.
  const Attrs count = {{"num_partitions", int64_t{table.parts}}, {kDistinctAttr, true}};
  const Output all = Range(Scalar(sink, 0), SizeOf(ids), Scalar(sink, 1));
  const Outputs asked = CallN("DynamicPartition", {places.row, places.part}, count);
  const Outputs targets = CallN("DynamicPartition", {all, places.part}, count);
  Outputs rows;
  for (int i = 0; i < table.parts; ++i) rows.push_back(table.rows_of(i, asked[i]));
  return Call("ParallelDynamicStitch",
              {Outputs(targets.begin(), targets.begin() + table.parts), rows});
}

Output ClipNorms(Output rows, int rank, double max_norm) {
  if (max_norm == 0) return rows;
  std::vector<int32_t> axes;
  for (int d = 1; d < rank; ++d) axes.push_back(d);
  const Output squares = Sum(Square(rows), Vector(*rows.sink, axes), true);
  // Compares squares, because the gradient of the norm, a square root, is infinite at 0.
  const Output limit = ConstantLike(rows, max_norm * max_norm);
  return rows * (Rsqrt(Maximum(squares, limit)) * max_norm);
}

// The rows of the distinct ids, and for each id the index of its row.
struct FetchedRows {
  Output rows;
  Output index;  // int32, one element for each id
};

// Returns the rows of `ids`, a vector. The results are not valid if the program has an error.
FetchedRows FetchRows(const TableView& table, Output ids, double max_norm) {
  Program& program = *table.program;
  if (table.parts == 0 || !ids.valid()) return {{&program, -1, 0}, {&program, -1, 0}};
  if (!table.shape.known_rank() || table.shape.rank() == 0 || max_norm < 0) {
    program.Fail(InvalidArgument("embedding lookup in '", table.name, "' of shape ",
                                 table.shape.ToString(), " with max_norm=", max_norm,
                                 ": expected a table of rank 1 or more, and no negative norm"));
  }
  const Outputs unique = CallN("Unique", {ids}, {{"out_idx", DType::kInt32}});
  return {ClipNorms(RowsOf(table, unique[0]), table.shape.rank(), max_norm), unique[1]};
}

// Reshapes the vector `x` so that it can multiply the rows of a tensor of rank `rank`.
Output AsColumn(Output x, int rank) {
  std::vector<int32_t> shape(rank, 1);
  shape[0] = -1;
  return Reshape(x, Vector(*x.sink, shape));
}

Output SumOfExamples(Output x, const IdLists& lists) {
  return Call("UnsortedSegmentSum", {x, lists.examples, lists.count});
}

Output WeightedRows(const FetchedRows& distinct, const IdLists& lists, int rank,
                    const EmbeddingLookupSparseOptions& options) {
  const Output rows = Gather(distinct.rows, distinct.index, Scalar(*lists.ids.sink, 0));
  const Output sum = SumOfExamples(rows * AsColumn(options.weights, rank), lists);
  if (options.combiner == Combiner::kSum) return sum;
  const Output divisor = options.combiner == Combiner::kMean
                             ? SumOfExamples(options.weights, lists)
                             : Sqrt(SumOfExamples(Square(options.weights), lists));
  return Call("DivNoNan", {sum, AsColumn(divisor, rank)});
}

const char* SegmentOp(Combiner combiner) {
  switch (combiner) {
    case Combiner::kSum:
      return "SparseSegmentSumWithNumSegments";
    case Combiner::kMean:
      return "SparseSegmentMeanWithNumSegments";
    case Combiner::kSqrtN:
      return "SparseSegmentSqrtNWithNumSegments";
  }
  return "";
}

}  // namespace

IdLists IdLists::FromSparse(Output indices, Output values, Output dense_shape, SourceLine line) {
  const CallerLine source(indices, line);
  GraphSink& sink = *indices.sink;
  const Output zero = Scalar(sink, 0);
  return {values, Gather(indices, zero, Scalar(sink, 1)), Gather(dense_shape, zero, zero)};
}

IdLists IdLists::FromRagged(Output values, Output row_splits, SourceLine line) {
  const CallerLine source(values, line);
  GraphSink& sink = *values.sink;
  const Output zero = Scalar(sink, 0);
  const Output splits = Cast(row_splits, DType::kInt64);
  const Output count = SizeOf(splits, DType::kInt64) - 1;
  // Value k belongs to example i if i + 1 of the splits are <= k.
  const Output positions =
      Range(Constant(sink, Tensor::Scalar<int64_t>(0)), SizeOf(values, DType::kInt64),
            Constant(sink, Tensor::Scalar<int64_t>(1)));
  const Output above = Call("UpperBound", {ExpandDims(splits, zero), ExpandDims(positions, zero)},
                            {{"out_type", DType::kInt64}});
  return {values, Reshape(above, Vector(sink, {-1})) - 1, count};
}

Output Lookup(const TableView& table, const LocatedOutput& located,
              const EmbeddingLookupOptions& options) {
  Program& program = *table.program;
  const Output ids = located.output();
  const CallerLine source(program, located.line());
  const auto scope = program.NameScope("embedding_lookup");
  if (!ids.valid()) return {&program, -1, 0};
  const Output flat = Reshape(ids, Vector(program, {-1}));
  const FetchedRows distinct = FetchRows(table, flat, options.max_norm);
  if (!distinct.rows.valid()) return distinct.rows;
  return Gather(distinct.rows, Reshape(distinct.index, ShapeOf(ids)), Scalar(program, 0));
}

Output LookupSparse(const TableView& table, const IdLists& lists,
                    const EmbeddingLookupSparseOptions& options) {
  Program& program = *table.program;
  const auto scope = program.NameScope("embedding_lookup_sparse");
  const FetchedRows distinct = FetchRows(table, lists.ids, options.max_norm);
  if (!distinct.rows.valid()) return distinct.rows;
  if (options.weights.valid()) return WeightedRows(distinct, lists, table.shape.rank(), options);
  return Call(SegmentOp(options.combiner),
              {distinct.rows, distinct.index, lists.examples, lists.count});
}

Output EmbeddingLookup(const PartitionedVariable& table, const LocatedOutput& ids,
                       const EmbeddingLookupOptions& options) {
  return Lookup(ViewOf(table), ids, options);
}

Output EmbeddingLookupSparse(const PartitionedVariable& table, const IdLists& lists,
                             const EmbeddingLookupSparseOptions& options, SourceLine line) {
  const CallerLine source(table.program(), line);
  return LookupSparse(ViewOf(table), lists, options);
}

}  // namespace penstock::client
