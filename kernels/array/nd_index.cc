// SPDX-License-Identifier: Apache-2.0
#include "kernels/array/nd_index.h"

#include "absl/strings/str_join.h"
#include "kernels/array/arguments.h"
#include "kernels/array/elements.h"
#include "kernels/array/gather_rows.h"

namespace penstock {
namespace {

Status CheckDepth(int64_t depth, int rank) {
  if (depth <= rank) return OkStatus();
  return InvalidArgument("index innermost dimension length must be <= params rank; saw: ", depth,
                         " vs. ", rank);
}

template <class Index>
Status Flatten(const Tensor& indices, int64_t depth, const Shape& target, BadIndices bad,
               NdIndex* list) {
  const Index* tuple = indices.data<Index>();
  for (size_t i = 0; i < list->slices.size(); ++i, tuple += depth) {
    int64_t slice = 0;
    bool inside = true;
    for (int64_t d = 0; d < depth; ++d) {
      inside = inside && tuple[d] >= 0 && tuple[d] < target.dim(d);
      // Unsigned, so that it cannot overflow: the result for a tuple out of range is not used.
      slice = static_cast<int64_t>(static_cast<uint64_t>(slice) * target.dim(d) + tuple[d]);
    }
    if (!inside && bad == BadIndices::kIgnore) {
      list->ignored.push_back(static_cast<int64_t>(i));
      slice = 0;
    } else if (!inside) {
      Shape lists = indices.shape();
      lists.RemoveDim(lists.rank() - 1);
      return InvalidArgument("indices[", CoordinatesText(lists, i), "] = [",
                             absl::StrJoin(tuple, tuple + depth, ", "),
                             "] does not index into shape ", target.ToString());
    }
    list->slices[i] = slice;
  }
  return OkStatus();
}

Status FlattenAny(const Tensor& indices, int64_t depth, const Shape& target, BadIndices bad,
                  NdIndex* list) {
  switch (indices.dtype()) {
    case DType::kInt16:
      return Flatten<int16_t>(indices, depth, target, bad, list);
    case DType::kUint16:
      return Flatten<uint16_t>(indices, depth, target, bad, list);
    case DType::kInt32:
      return Flatten<int32_t>(indices, depth, target, bad, list);
    case DType::kInt64:
      return Flatten<int64_t>(indices, depth, target, bad, list);
    default:
      return InvalidArgument("indices must be int16, uint16, int32 or int64, are ",
                             Name(indices.dtype()));
  }
}

}  // namespace

Status ReadBadIndicesPolicy(const KernelInit& node, BadIndices* policy) {
  std::string name;
  RETURN_IF_ERROR(node.Attr("bad_indices_policy", &name));
  *policy = name == "IGNORE" ? BadIndices::kIgnore : BadIndices::kError;
  if (name.empty() || name == "DEFAULT" || name == "ERROR" || name == "IGNORE") return OkStatus();
  return InvalidArgument("bad_indices_policy must be ERROR, IGNORE or DEFAULT, is '", name, "'");
}

StatusOr<NdIndex> NdIndex::Of(const Tensor& indices, const Shape& target, BadIndices bad) {
  if (indices.rank() < 1) return InvalidArgument("indices must be at least a vector");
  const int64_t depth = indices.dim(indices.rank() - 1);
  RETURN_IF_ERROR(CheckDepth(depth, target.rank()));
  NdIndex list;
  for (int i = 0; i + 1 < indices.rank(); ++i) {
    list.tuples *= indices.dim(i);
    list.result.push_back(indices.dim(i));
  }
  for (int i = 0; i < target.rank(); ++i) {
    if (i < depth) {
      list.num_slices *= target.dim(i);
    } else {
      list.slice_elements *= target.dim(i);
      list.result.push_back(target.dim(i));
    }
  }
  // A list of empty tuples takes no memory, so it may have more tuples than `slices` could hold.
  if (depth == 0) return list;
  list.slices.resize(list.tuples);
  RETURN_IF_ERROR(FlattenAny(indices, depth, target, bad, &list));
  return list;
}

StatusOr<Tensor> NdIndex::RemoveIgnored(const Tensor& updates) {
  if (ignored.empty()) return updates;
  const int64_t left = tuples - static_cast<int64_t>(ignored.size());
  ASSIGN_OR_RETURN(Tensor kept,
                   Tensor::Make(CpuAllocator(), updates.dtype(), Shape({left, slice_elements})));
  const int64_t bytes = slice_elements * static_cast<int64_t>(SizeOf(updates.dtype()));
  const char* const from = static_cast<const char*>(updates.raw_data());
  char* const to = static_cast<char*>(kept.mutable_raw_data());
  int64_t out = 0;
  for (int64_t i = 0, next = 0; i < tuples; ++i) {
    if (next < static_cast<int64_t>(ignored.size()) && ignored[next] == i) {
      ++next;
      continue;
    }
    slices[out] = slices[i];
    CopyElements(updates.dtype(), from + i * bytes, to + out++ * bytes, slice_elements);
  }
  slices.resize(left);
  tuples = left;
  ignored.clear();
  return kept;
}

StatusOr<PartialShape> NdIndexedShape(const PartialShape& indices, const PartialShape& target) {
  if (!indices.known_rank() || !target.known_rank()) return PartialShape();
  if (indices.rank() < 1) return InvalidArgument("indices must be at least a vector");
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth < 0) return PartialShape();
  RETURN_IF_ERROR(CheckDepth(depth, target.rank()));
  return JoinShapes(SubShape(indices, 0, indices.rank() - 1),
                    SubShape(target, static_cast<int>(depth), target.rank()));
}

}  // namespace penstock
