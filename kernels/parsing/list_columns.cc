// SPDX-License-Identifier: Apache-2.0
#include "kernels/parsing/list_columns.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/array/elements.h"

namespace penstock {

StatusOr<ListColumn> ListColumn::Make(const std::vector<SequenceRecord>& sequences,
                                      const ColumnRows& records, const std::string& key,
                                      DType dtype, bool may_miss) {
  ListColumn column(records, dtype);
  column.steps_.key = key;
  for (size_t r = 0; r < sequences.size(); ++r) {
    const auto record = static_cast<int64_t>(r);
    ASSIGN_OR_RETURN(auto steps, sequences[r].FindList(key));
    if (!steps && !may_miss) {
      return InvalidArgument(records.NameOf(record), ", Feature list '", key,
                             "' is required but could not be found.  Did you mean to include it in "
                             "feature_list_dense_missing_assumed_empty or "
                             "feature_list_dense_defaults?");
    }
    column.lengths_.push_back(steps ? static_cast<int64_t>(steps->size()) : 0);
    if (!steps) continue;
    for (size_t s = 0; s < steps->size(); ++s) {
      Feature& step = (*steps)[s];
      const bool empty = step.dtype == DType::kInvalid;
      if (!empty && step.dtype != dtype) {
        return InvalidArgument(column.Place(record, static_cast<int64_t>(s)),
                               ".  Data types don't match. Data type: ", Name(step.dtype),
                               " but expected type: ", Name(dtype));
      }
      column.steps_.features.push_back(empty ? std::nullopt : std::optional(std::move(step)));
    }
  }
  return column;
}

int64_t ListColumn::longest() const {
  return lengths_.empty() ? 0 : *std::max_element(lengths_.begin(), lengths_.end());
}

std::string ListColumn::Place(int64_t record, int64_t step) const {
  return StrCat(records_.NameOf(record), ", Feature list: ", steps_.key, ", Index: ", step);
}

Status ListColumn::ToDense(const PartialShape& step, KernelContext& ctx, int values,
                           int lengths) const {
  if (!step.fully_known()) {
    return InvalidArgument("feature_list_dense_shapes: ", step.ToString(), " is not fully defined");
  }
  ASSIGN_OR_RETURN(const int64_t count, CheckedProduct(step.dims()));
  const int64_t longest = this->longest();
  size_t at = 0;
  for (int64_t record = 0; record < num_records(); ++record) {
    for (int64_t s = 0; s < lengths_[record]; ++s, ++at) {
      const int64_t size = steps_.features[at] ? steps_.features[at]->size() : 0;
      if (size == count) continue;
      return InvalidArgument(Place(record, s), ".  Number of ", Name(dtype_),
                             " values != expected.  Values size: ", size,
                             " but output shape: ", step.ToString());
    }
  }
  Dims dims(step.dims().begin(), step.dims().end());
  dims.insert(dims.begin(), longest);
  if (records_.batched) dims.insert(dims.begin(), num_records());
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  Tensor* out;
  RETURN_IF_ERROR(ctx.Allocate(values, shape, &out));
  if (lengths >= 0) RETURN_IF_ERROR(SetLengths(ctx, lengths));
  at = 0;
  for (int64_t record = 0; record < num_records(); ++record) {
    int64_t place = record * longest * count;
    for (int64_t s = 0; s < lengths_[record]; ++s, ++at, place += count) {
      if (steps_.features[at]) steps_.features[at]->CopyTo(out, place);
    }
    ZeroElements(dtype_, ElementAt(out->mutable_raw_data(), dtype_, place),
                 (longest - lengths_[record]) * count);
  }
  return OkStatus();
}

Status ListColumn::SetLengths(KernelContext& ctx, int output) const {
  Tensor* lengths;
  RETURN_IF_ERROR(
      ctx.Allocate(output, records_.batched ? Shape({num_records()}) : Shape(), &lengths));
  std::copy(lengths_.begin(), lengths_.end(), lengths->mutable_data<int64_t>());
  return OkStatus();
}

Status ListColumn::ToSparse(KernelContext& ctx, SparseOutputs outputs) const {
  int64_t total = 0, widest = 0;
  for (const auto& step : steps_.features) {
    const int64_t size = step ? step->size() : 0;
    total += size;
    widest = std::max(widest, size);
  }
  const int64_t rank = records_.batched ? 3 : 2;
  Tensor *indices, *values, *shape;
  RETURN_IF_ERROR(ctx.Allocate(outputs.indices, Shape({total, rank}), &indices));
  RETURN_IF_ERROR(ctx.Allocate(outputs.values, Shape({total}), &values));
  RETURN_IF_ERROR(ctx.Allocate(outputs.shape, Shape({rank}), &shape));
  int64_t* index = indices->mutable_data<int64_t>();
  int64_t place = 0;
  size_t at = 0;
  for (int64_t record = 0; record < num_records(); ++record) {
    for (int64_t s = 0; s < lengths_[record]; ++s, ++at) {
      const int64_t size = steps_.features[at] ? steps_.features[at]->size() : 0;
      for (int64_t i = 0; i < size; ++i) {
        if (records_.batched) *index++ = record;
        *index++ = s;
        *index++ = i;
      }
      if (size > 0) steps_.features[at]->CopyTo(values, place);
      place += size;
    }
  }
  int64_t* dims = shape->mutable_data<int64_t>();
  if (records_.batched) *dims++ = num_records();
  dims[0] = longest();
  dims[1] = widest;
  return OkStatus();
}

Status ListColumn::ToRagged(KernelContext& ctx, int values, int outer_splits,
                            int inner_splits) const {
  RETURN_IF_ERROR(ParseRaggedColumn(steps_, dtype_, ctx, values, inner_splits));
  // A single record has no outer splits.
  Tensor* splits;
  RETURN_IF_ERROR(
      ctx.Allocate(outer_splits, Shape({records_.batched ? num_records() + 1 : 0}), &splits));
  if (!records_.batched) return OkStatus();
  int64_t steps = 0;
  for (int64_t record = 0; record <= num_records(); ++record) {
    if (splits->dtype() == DType::kInt64) {
      splits->mutable_data<int64_t>()[record] = steps;
    } else if (steps <= std::numeric_limits<int32_t>::max()) {
      splits->mutable_data<int32_t>()[record] = static_cast<int32_t>(steps);
    } else {
      return InvalidArgument("Feature list: ", steps_.key,
                             ": more steps than int32 row splits can count");
    }
    if (record < num_records()) steps += lengths_[record];
  }
  return OkStatus();
}

}  // namespace penstock
