// SPDX-License-Identifier: Apache-2.0
#include "kernels/parsing/columns.h"

#include <algorithm>

#include "kernels/array/elements.h"

namespace penstock {
namespace {

// Writes the concatenated values of the rows to output `output`.
Status CopyValues(const ColumnRows& rows, DType dtype, int64_t total, KernelContext& ctx,
                  int output) {
  Tensor* values;
  RETURN_IF_ERROR(ctx.Allocate(output, Shape({total}), &values));
  if (values->dtype() != dtype) return Internal("a column's type is not that of its output");
  int64_t at = 0;
  for (const auto& feature : rows.features) {
    if (!feature) continue;
    feature->CopyTo(values, at);
    at += feature->size();
  }
  return OkStatus();
}

// Returns the lengths of the rows; that of a row without the feature is 0. InvalidArgument if a row
// has another type.
StatusOr<std::vector<int64_t>> Lengths(const ColumnRows& rows, DType dtype) {
  std::vector<int64_t> lengths;
  for (int64_t row = 0; row < rows.size(); ++row) {
    RETURN_IF_ERROR(rows.CheckType(row, dtype));
    lengths.push_back(rows.features[row] ? rows.features[row]->size() : 0);
  }
  return lengths;
}

}  // namespace

Status CheckFeatureType(DType dtype, string_view attr) {
  if (std::find(std::begin(kFeatureTypes), std::end(kFeatureTypes), dtype) !=
      std::end(kFeatureTypes)) {
    return OkStatus();
  }
  return InvalidArgument(attr, ": features are float, int64 or string, not ", Name(dtype));
}

std::string ColumnRows::NameOf(int64_t row) const {
  if (names == nullptr || names->num_elements() == 0) return "Name: <unknown>";
  // A single name applies to all rows: the rows are then the steps of one record.
  return StrCat("Name: ", names->data<std::string>()[names->num_elements() == 1 ? 0 : row]);
}

Status ColumnRows::CheckType(int64_t row, DType expected) const {
  if (!features[row] || features[row]->dtype == expected) return OkStatus();
  return InvalidArgument(NameOf(row), ", Key: ", key, ", Index: ", row,
                         ".  Data types don't match. Data type: ", Name(features[row]->dtype),
                         " but expected type: ", Name(expected));
}

int64_t DenseColumn::stride() const {
  int64_t elements = 1;
  for (int i = variable_length() ? 1 : 0; i < shape.rank(); ++i) elements *= shape.dim(i);
  return elements;
}

Status DenseColumn::Check(int index) const {
  RETURN_IF_ERROR(CheckFeatureType(dtype, "Tdense"));
  const std::string place = StrCat("[", index, "]");
  PartialShape rest = shape;
  if (!shape.known_rank()) return InvalidArgument("dense_shapes", place, " has no rank");
  if (variable_length()) rest.set_dim(0, 1);
  if (!rest.fully_known() || !CheckedProduct(rest.dims()).ok()) {
    return InvalidArgument("dense_shapes", place, " = ", shape.ToString(),
                           ": only the first dimension may be unknown");
  }
  if (default_value.dtype() != dtype) {
    return InvalidArgument("dense_defaults", place, " is ", Name(default_value.dtype()),
                           ", Tdense says ", Name(dtype));
  }
  if (variable_length()) {
    if (default_value.num_elements() == 1) return OkStatus();
    return InvalidArgument("dense_shape", place, " is a variable length shape: ", shape.ToString(),
                           ", therefore def_value", place,
                           " must contain a single element (the padding element).  But its shape "
                           "is: ",
                           default_value.shape().ToString());
  }
  if (default_value.num_elements() > 0 && !shape.Compatible(default_value.shape())) {
    return InvalidArgument("def_value", place, ".shape() == ", default_value.shape().ToString(),
                           " is not compatible with dense_shapes_", place,
                           " == ", shape.ToString());
  }
  return OkStatus();
}

Status DenseColumn::Parse(const ColumnRows& rows, KernelContext& ctx, int output) const {
  for (int64_t row = 0; row < rows.size(); ++row) RETURN_IF_ERROR(rows.CheckType(row, dtype));
  return variable_length() ? ParseVariable(rows, ctx, output) : ParseFixed(rows, ctx, output);
}

Status DenseColumn::ParseFixed(const ColumnRows& rows, KernelContext& ctx, int output) const {
  Dims dims(shape.dims().begin(), shape.dims().end());
  if (rows.batched) dims.insert(dims.begin(), rows.size());
  ASSIGN_OR_RETURN(const Shape out, Shape::Make(dims));
  // The attributes may ask for a larger tensor than the records justify, so check before allocating
  // it.
  const int64_t count = stride();
  for (int64_t row = 0; row < rows.size(); ++row) {
    const auto& feature = rows.features[row];
    if (!feature && default_value.num_elements() == 0 && count > 0) {
      return InvalidArgument(rows.NameOf(row), ", Feature: ", rows.key,
                             " (data type: ", Name(dtype), ") is required but could not be found.");
    }
    if (feature && feature->size() != count) {
      return InvalidArgument(rows.NameOf(row), ", Key: ", rows.key, ", Index: ", row,
                             ".  Number of ", Name(dtype),
                             " values != expected.  Values size: ", feature->size(),
                             " but output shape: ", shape.ToString());
    }
  }
  Tensor* values;
  RETURN_IF_ERROR(ctx.Allocate(output, out, &values));
  for (int64_t row = 0; row < rows.size(); ++row) {
    if (rows.features[row]) {
      rows.features[row]->CopyTo(values, row * count);
    } else if (count > 0) {
      CopyElements(dtype, default_value.raw_data(),
                   ElementAt(values->mutable_raw_data(), dtype, row * count), count);
    }
  }
  return OkStatus();
}

Status DenseColumn::ParseVariable(const ColumnRows& rows, KernelContext& ctx, int output) const {
  ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, Lengths(rows, dtype));
  const int64_t step = stride();
  int64_t longest = 0;
  for (int64_t row = 0; row < rows.size(); ++row) {
    if (step == 0 ? lengths[row] != 0 : lengths[row] % step != 0) {
      return InvalidArgument(rows.NameOf(row), ", Key: ", rows.key, ", Index: ", row,
                             ".  Number of ", Name(dtype),
                             " values is not a multiple of stride length. Saw ", lengths[row],
                             " values but output shape is: ", shape.ToString());
    }
    if (step > 0) longest = std::max(longest, lengths[row] / step);
  }
  Dims dims(shape.dims().begin(), shape.dims().end());
  dims[0] = longest;
  if (rows.batched) dims.insert(dims.begin(), rows.size());
  ASSIGN_OR_RETURN(const Shape out, Shape::Make(dims));
  Tensor* values;
  RETURN_IF_ERROR(ctx.Allocate(output, out, &values));
  for (int64_t row = 0; row < rows.size(); ++row) {
    const int64_t begin = row * longest * step;
    if (rows.features[row]) rows.features[row]->CopyTo(values, begin);
    FillElements(dtype, default_value.raw_data(),
                 ElementAt(values->mutable_raw_data(), dtype, begin + lengths[row]),
                 longest * step - lengths[row]);
  }
  return OkStatus();
}

Status ParseSparseColumn(const ColumnRows& rows, DType dtype, KernelContext& ctx,
                         SparseOutputs outputs) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, Lengths(rows, dtype));
  int64_t total = 0, longest = 0;
  for (const int64_t length : lengths) {
    total += length;
    longest = std::max(longest, length);
  }
  const int64_t rank = rows.batched ? 2 : 1;
  Tensor *indices, *shape;
  RETURN_IF_ERROR(ctx.Allocate(outputs.indices, Shape({total, rank}), &indices));
  int64_t* index = indices->mutable_data<int64_t>();
  for (int64_t row = 0; row < rows.size(); ++row) {
    for (int64_t i = 0; i < lengths[row]; ++i) {
      if (rows.batched) *index++ = row;
      *index++ = i;
    }
  }
  RETURN_IF_ERROR(ctx.Allocate(outputs.shape, Shape({rank}), &shape));
  if (rows.batched) shape->mutable_data<int64_t>()[0] = rows.size();
  shape->mutable_data<int64_t>()[rank - 1] = longest;
  return CopyValues(rows, dtype, total, ctx, outputs.values);
}

Status ParseRaggedColumn(const ColumnRows& rows, DType dtype, KernelContext& ctx, int values,
                         int row_splits) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, Lengths(rows, dtype));
  // A single record has only values, no splits.
  const int64_t num_splits = rows.batched ? rows.size() + 1 : 0;
  Tensor* splits;
  RETURN_IF_ERROR(ctx.Allocate(row_splits, Shape({num_splits}), &splits));
  const bool wide = splits->dtype() == DType::kInt64;
  int64_t total = 0;
  for (int64_t row = 0; row <= rows.size(); ++row) {
    if (!wide && total > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("Key: ", rows.key, ": more values than int32 row splits can count");
    }
    if (row < num_splits && wide) splits->mutable_data<int64_t>()[row] = total;
    if (row < num_splits && !wide) {
      splits->mutable_data<int32_t>()[row] = static_cast<int32_t>(total);
    }
    if (row < rows.size()) total += lengths[row];
  }
  return CopyValues(rows, dtype, total, ctx, values);
}

StatusOr<int> NumSparse(const ShapeScope& s, string_view count, string_view types) {
  const int64_t wanted = s.attr<int64_t>(count);
  const auto* list = s.attrs().find(types)->second.get<std::vector<EdgeType>>();
  const size_t found = list == nullptr ? 0 : list->size();
  if (wanted == static_cast<int64_t>(found)) return static_cast<int>(wanted);
  return InvalidArgument(count, " is ", wanted, ", there are ", found, " ", types);
}

}  // namespace penstock
