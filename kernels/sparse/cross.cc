// SPDX-License-Identifier: Apache-2.0
//
// SparseCross, SparseCrossV2, SparseCrossHashed: for each row, make all combinations of features
// that take one feature from each column. Columns are sparse or dense matrices of strings or
// integers. A combination is a joined string or a hash. Trained models depend on the hashes, so the
// hashes must always be TensorFlow's.
#include <highwayhash/sip_hash.h>

#include <algorithm>

#include "kernels/sparse/cross_columns.h"
#include "kernels/sparse/cross_features.h"
#include "kernels/sparse/forms.h"
#include "kernels/sparse/sparse_tensor.h"

namespace penstock {
namespace {

// Writes the sparse result: element [i, k] is combination k of row i, made by join(picks).
template <class T, class Join>
Status WriteCombinations(KernelContext& ctx, const FeatureBatch& batch, const Join& join) {
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
    ASSIGN_OR_RETURN(const FeatureBatch batch, ReadBatch(ctx, num_sparse_, ctx.num_inputs()));
    const std::vector<FeatureColumn>& columns = batch.columns;
    for (const FeatureColumn& column : columns) {
      if (only_strings_ && column.values.dtype() != DType::kString) {
        return InvalidArgument("features must be strings where internal_type is string, are ",
                               Name(column.values.dtype()));
      }
    }
    if (hashed_) {
      return WriteCombinations<int64_t>(ctx, batch, [&](const std::vector<int64_t>& picks) {
        return HashFeatures(columns, picks, hash_key_, num_buckets_);
      });
    }
    return WriteCombinations<std::string>(ctx, batch, [&](const std::vector<int64_t>& picks) {
      return JoinFeatures(columns, picks, "_X_");
    });
  }

 private:
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
    ASSIGN_OR_RETURN(const FeatureBatch batch, ReadBatch(ctx, num_sparse_, ctx.num_inputs() - 1));
    return WriteCombinations<std::string>(ctx, batch, [&](const std::vector<int64_t>& picks) {
      return JoinFeatures(batch.columns, picks, separator.scalar<std::string>());
    });
  }

 private:
  int num_sparse_ = 0;
};

// The inputs after the columns are num_buckets, strong_hash and salt. A strong hash is SipHash-2-4
// with the salt as key. (TensorFlow's process crashes if columns of integers use the strong hash.)
class SparseCrossHashedKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("N", &num_sparse_); }

  Status Compute(KernelContext& ctx) override {
    const int rest = ctx.num_inputs() - 3;
    const Tensor &num_buckets = ctx.input(rest), &strong = ctx.input(rest + 1);
    const Tensor& salt = ctx.input(rest + 2);
    if (num_buckets.rank() != 0 || strong.rank() != 0) {
      return InvalidArgument("num_buckets and strong_hash must be scalars, have shapes ",
                             num_buckets.shape().ToString(), " and ", strong.shape().ToString());
    }
    if (salt.shape() != Shape{2}) {
      return InvalidArgument("Input \"salt\" must have length 2, has shape ",
                             salt.shape().ToString());
    }
    ASSIGN_OR_RETURN(const FeatureBatch batch, ReadBatch(ctx, num_sparse_, rest));
    const int64_t buckets = num_buckets.scalar<int64_t>();
    if (!strong.scalar<bool>()) return WriteHashes(ctx, batch, buckets, FarmHash);
    const highwayhash::HH_U64 key[] = {static_cast<highwayhash::HH_U64>(salt.data<int64_t>()[0]),
                                       static_cast<highwayhash::HH_U64>(salt.data<int64_t>()[1])};
    return WriteHashes(ctx, batch, buckets, [&](const std::string& text) {
      return highwayhash::SipHash(key, text.data(), text.size());
    });
  }

 private:
  template <class HashString>
  static Status WriteHashes(KernelContext& ctx, const FeatureBatch& batch, int64_t buckets,
                            const HashString& hash_string) {
    return WriteCombinations<int64_t>(ctx, batch, [&](const std::vector<int64_t>& picks) {
      uint64_t hash = HashFeature(batch.columns[0].values, picks[0], hash_string);
      for (size_t c = 1; c < picks.size(); ++c) {
        hash = MixHashes(hash, HashFeature(batch.columns[c].values, picks[c], hash_string));
      }
      return HashBucket(hash, buckets);
    });
  }

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
      .untestable_alone =
          "needs lists of types, for which generated examples have no values: kernels/sparse has "
          "its tests",
  };
}

OpDef SparseCrossOp() {
  OpDef op = CrossOp(
      "Returns every combination of the features of each row: the strings joined by "
      "_X_, or a hash of them.");
  op.outputs = SparseArgs("output", "out_type");
  op.types = {{"out_type", kFeatureTypes}, {"internal_type", kFeatureTypes}};
  op.attrs.push_back({"hashed_output", Bools{}});
  op.attrs.push_back({"num_buckets", Ints{.min = 0}});
  op.attrs.push_back({"hash_key", Ints{}});
  return op;
}

OpDef SparseCrossV2Op() {
  OpDef op = CrossOp("Returns every combination of the features of each row, joined by sep.");
  op.inputs.push_back({"sep", "string"});
  op.outputs = SparseArgs("output", "string");
  return op;
}

OpDef SparseCrossHashedOp() {
  OpDef op = CrossOp("Returns a hash of every combination of the features of each row.");
  op.inputs =
      Join(op.inputs, {{"num_buckets", "int64"}, {"strong_hash", "bool"}, {"salt", "int64"}});
  op.outputs = SparseArgs("output", "int64");
  return op;
}

}  // namespace

OP(SparseCross) { return SparseCrossOp(); }
KERNEL_ANY_TYPE(SparseCross, SparseCrossKernel);
OP(SparseCrossV2) { return SparseCrossV2Op(); }
KERNEL_ANY_TYPE(SparseCrossV2, SparseCrossV2Kernel);
OP(SparseCrossHashed) { return SparseCrossHashedOp(); }
KERNEL_ANY_TYPE(SparseCrossHashed, SparseCrossHashedKernel);

}  // namespace penstock
