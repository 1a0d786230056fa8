// SPDX-License-Identifier: Apache-2.0
//
// SparseCross, SparseCrossV2: every combination of the features of each row, one from each column
// of a batch; columns are sparse or dense matrices of strings or integers. Combinations are joined
// strings or hashes of theirs; programs store what they learned under the hashes, so these are
// TensorFlow's for ever.
#include <farmhash.h>

#include <algorithm>
#include <limits>

#include "kernels/sparse/forms.h"
#include "kernels/sparse/sparse_tensor.h"

namespace penstock {
namespace {

// Elements [begin, end) of a column.
struct Features {
  int64_t begin, end;
};

// A column. Only rows with features stand in it.
struct Column {
  Tensor values;
  std::vector<int64_t> rows;  // ascending
  std::vector<Features> features;

  void Add(int64_t row, Features of_row) {
    rows.push_back(row);
    features.push_back(of_row);
  }
  // Those of a row, perhaps none.
  Features Of(int64_t row) const {
    const auto found = std::lower_bound(rows.begin(), rows.end(), row);
    return found != rows.end() && *found == row ? features[found - rows.begin()] : Features{0, 0};
  }
};

StatusOr<Column> SparseColumn(const SparseTensor& x) {
  RETURN_IF_ERROR(x.CheckBounds());
  Column column{.values = x.values()};
  for (int64_t i = 0; i < x.size();) {
    const int64_t row = x.place(i)[0], begin = i;
    if (!column.rows.empty() && row < column.rows.back()) {
      return InvalidArgument("indices[", i, "] = ", ToString(x.place(i)),
                             " is out of order: rows must ascend");
    }
    while (i < x.size() && x.place(i)[0] == row) ++i;
    column.Add(row, {begin, i});
  }
  return column;
}

Column DenseColumn(const Tensor& values) {
  Column column{.values = values};
  const int64_t width = values.dim(1);
  if (width == 0) return column;
  for (int64_t row = 0; row < values.dim(0); ++row)
    column.Add(row, {row * width, (row + 1) * width});
  return column;
}

struct Batch {
  int64_t rows = 0;
  std::vector<Column> columns;

  Status Add(int64_t own_rows, Column column) {
    if (columns.empty()) rows = own_rows;
    if (own_rows != rows) {
      return InvalidArgument("Expected batch size ", rows, ", got ", own_rows, " in column ",
                             columns.size());
    }
    columns.push_back(std::move(column));
    return OkStatus();
  }
};

// Inputs: N indices, N values, N shapes, then dense matrices up to `num_inputs`.
StatusOr<Batch> ReadBatch(const KernelContext& ctx, int num_sparse, int num_inputs) {
  Batch batch;
  for (int i = 0; i < num_sparse; ++i) {
    ASSIGN_OR_RETURN(const SparseTensor x,
                     SparseTensor::Make(ctx.input(i), ctx.input(num_sparse + i),
                                        ctx.input(2 * num_sparse + i), StrCat("column ", i)));
    if (x.rank() != 2) {
      return InvalidArgument("column ", i, " must be a matrix of features, has rank ", x.rank());
    }
    ASSIGN_OR_RETURN(Column column, SparseColumn(x));
    RETURN_IF_ERROR(batch.Add(x.shape()[0], std::move(column)));
  }
  for (int i = 3 * num_sparse; i < num_inputs; ++i) {
    const Tensor& dense = ctx.input(i);
    if (dense.rank() != 2) {
      return InvalidArgument("Dense inputs should be a matrix but received shape ",
                             dense.shape().ToString(), " in column ", batch.columns.size());
    }
    RETURN_IF_ERROR(batch.Add(dense.dim(0), DenseColumn(dense)));
  }
  return batch;
}

// A row in which every column has features, and how many combinations of them there are.
struct CrossedRow {
  int64_t row = 0, count = 1;
  std::vector<Features> features = {};
};

StatusOr<std::vector<CrossedRow>> CrossedRows(const Batch& batch) {
  std::vector<CrossedRow> crossed;
  if (batch.columns.empty()) return crossed;
  int64_t total = 0;
  for (const int64_t row : batch.columns[0].rows) {
    CrossedRow each{.row = row};
    for (const Column& column : batch.columns) {
      each.features.push_back(column.Of(row));
      const int64_t features = each.features.back().end - each.features.back().begin;
      if (__builtin_mul_overflow(each.count, features, &each.count)) {
        return InvalidArgument("row ", row, " has more combinations than 64 bits can count");
      }
    }
    if (each.count == 0) continue;
    if (__builtin_add_overflow(total, each.count, &total)) {
      return InvalidArgument("there are more combinations than 64 bits can count");
    }
    crossed.push_back(std::move(each));
  }
  return crossed;
}

// Calls visit(picks) for each combination: the number of an element for each column, the last
// column going through its features first.
template <class Visit>
void ForEachCombination(const CrossedRow& row, const Visit& visit) {
  std::vector<int64_t> picks;
  for (const Features& features : row.features) picks.push_back(features.begin);
  for (int64_t k = 0; k < row.count; ++k) {
    visit(picks);
    for (size_t c = picks.size(); c-- > 0;) {
      if (++picks[c] < row.features[c].end) break;
      picks[c] = row.features[c].begin;
    }
  }
}

// The sparse result: combination k of row i at [i, k], made by join(picks).
template <class T, class Join>
Status WriteCombinations(KernelContext& ctx, const Batch& batch, const Join& join) {
  ASSIGN_OR_RETURN(const std::vector<CrossedRow> rows, CrossedRows(batch));
  int64_t total = 0, widest = 0;
  for (const CrossedRow& row : rows) {
    total += row.count;
    widest = std::max(widest, row.count);
  }
  ASSIGN_OR_RETURN(const Shape places_shape, Shape::Make({total, 2}));
  Tensor *places, *values;
  RETURN_IF_ERROR(ctx.Allocate(0, places_shape, &places));
  RETURN_IF_ERROR(ctx.Allocate(1, Shape{total}, &values));
  int64_t* place = places->mutable_data<int64_t>();
  T* value = values->mutable_data<T>();
  for (const CrossedRow& row : rows) {
    int64_t k = 0;
    ForEachCombination(row, [&](const std::vector<int64_t>& picks) {
      *place++ = row.row;
      *place++ = k++;
      *value++ = join(picks);
    });
  }
  return WriteVector(ctx, 2, {batch.rows, widest});
}

std::string JoinFeatures(const std::vector<Column>& columns, const std::vector<int64_t>& picks,
                         const std::string& separator) {
  std::string joined;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (c > 0) joined += separator;
    const Tensor& values = columns[c].values;
    if (values.dtype() == DType::kString) {
      joined += values.data<std::string>()[picks[c]];
    } else {
      StrAppend(&joined, values.data<int64_t>()[picks[c]]);
    }
  }
  return joined;
}

// Two fingerprints as one: the mixing of MurmurHash64A (A. Appleby, public domain).
uint64_t Mix(uint64_t a, uint64_t b) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  const auto fold = [](uint64_t x) { return x ^ x >> 47; };
  uint64_t hash = a ^ kMultiplier;
  hash = (hash ^ fold(b * kMultiplier) * kMultiplier) * kMultiplier;
  return fold(fold(hash) * kMultiplier);
}

class SparseCrossKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    RETURN_IF_ERROR(node.Attr("N", &num_sparse_));
    RETURN_IF_ERROR(node.Attr("hashed_output", &hashed_));
    RETURN_IF_ERROR(node.Attr("num_buckets", &num_buckets_));
    RETURN_IF_ERROR(node.Attr("hash_key", &hash_key_));
    DType out, internal;
    RETURN_IF_ERROR(node.Attr("out_type", &out));
    RETURN_IF_ERROR(node.Attr("internal_type", &internal));
    only_strings_ = internal == DType::kString;
    hashed_ |= !only_strings_;
    if (out == (hashed_ ? DType::kInt64 : DType::kString)) return OkStatus();
    return InvalidArgument("node '", node.name, "': out_type ", Name(out), " does not go with ",
                           "internal_type ", Name(internal), "; hashes are int64");
  }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Batch batch, ReadBatch(ctx, num_sparse_, ctx.num_inputs()));
    const std::vector<Column>& columns = batch.columns;
    for (const Column& column : columns) {
      if (only_strings_ && column.values.dtype() != DType::kString) {
        return InvalidArgument("features must be strings where internal_type is string, are ",
                               Name(column.values.dtype()));
      }
    }
    if (hashed_) {
      return WriteCombinations<int64_t>(
          ctx, batch, [&](const std::vector<int64_t>& picks) { return Hash(columns, picks); });
    }
    return WriteCombinations<std::string>(ctx, batch, [&](const std::vector<int64_t>& picks) {
      return JoinFeatures(columns, picks, "_X_");
    });
  }

 private:
  int64_t Hash(const std::vector<Column>& columns, const std::vector<int64_t>& picks) const {
    auto hash = static_cast<uint64_t>(hash_key_);
    for (size_t c = 0; c < columns.size(); ++c) {
      const Tensor& values = columns[c].values;
      if (values.dtype() == DType::kString) {
        const std::string& feature = values.data<std::string>()[picks[c]];
        hash = Mix(hash, util::Fingerprint64(feature.data(), feature.size()));
      } else {
        hash = Mix(hash, static_cast<uint64_t>(values.data<int64_t>()[picks[c]]));
      }
    }
    // Without buckets the hash loses what would make it negative.
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    return static_cast<int64_t>(hash % (num_buckets_ > 0 ? num_buckets_ : kMax));
  }

  int num_sparse_ = 0;
  bool hashed_ = false, only_strings_ = false;
  int64_t num_buckets_ = 0, hash_key_ = 0;
};

class SparseCrossV2Kernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("N", &num_sparse_); }

  Status Compute(KernelContext& ctx) override {
    const Tensor& separator = ctx.input(ctx.num_inputs() - 1);
    if (separator.rank() != 0) {
      return InvalidArgument("sep must be scalar, has shape ", separator.shape().ToString());
    }
    ASSIGN_OR_RETURN(const Batch batch, ReadBatch(ctx, num_sparse_, ctx.num_inputs() - 1));
    return WriteCombinations<std::string>(ctx, batch, [&](const std::vector<int64_t>& picks) {
      return JoinFeatures(batch.columns, picks, separator.scalar<std::string>());
    });
  }

 private:
  int num_sparse_ = 0;
};

Status CrossShape(ShapeScope& s) {
  SetSparseOutput(s, 0, -1, 2);
  return OkStatus();
}

const DTypes kFeatureTypes = {DType::kInt64, DType::kString};

OpDef CrossOp(const char* doc) {
  return {
      .doc = doc,
      .inputs = {{"indices", Repeat("N", "int64")},
                 {"values", List("sparse_types")},
                 {"shapes", Repeat("N", "int64")},
                 {"dense_inputs", List("dense_types")}},
      .attrs = {{"N", Ints{.min = 0}},
                {"sparse_types", TypeList{.allowed = kFeatureTypes}},
                {"dense_types", TypeList{.allowed = kFeatureTypes}}},
      .shape = CrossShape,
      .gradient = NoGradient,
  };
}

OpDef SparseCrossOp() {
  OpDef op = CrossOp("Every combination of the features of each row: joined by _X_, or hashed.");
  op.outputs = SparseArgs("output", "out_type");
  op.types = {{"out_type", kFeatureTypes}, {"internal_type", kFeatureTypes}};
  op.attrs.push_back({"hashed_output", Bools{}});
  op.attrs.push_back({"num_buckets", Ints{.min = 0}});
  op.attrs.push_back({"hash_key", Ints{}});
  return op;
}

OpDef SparseCrossV2Op() {
  OpDef op = CrossOp("Every combination of the features of each row, joined by sep.");
  op.inputs.push_back({"sep", "string"});
  op.outputs = SparseArgs("output", "string");
  return op;
}

}  // namespace

OP(SparseCross, (SparseCrossOp()));
KERNEL_ANY_TYPE(SparseCross, SparseCrossKernel);
OP(SparseCrossV2, (SparseCrossV2Op()));
KERNEL_ANY_TYPE(SparseCrossV2, SparseCrossV2Kernel);

}  // namespace penstock
