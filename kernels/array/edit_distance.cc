// SPDX-License-Identifier: Apache-2.0
//
// EditDistance: the Levenshtein distances between the sequences of two sparse tensors. A sequence
// is a row along the last dimension.
#include <algorithm>
#include <limits>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "kernels/array/arguments.h"

namespace penstock {
namespace {

// A sparse tensor as sequences: one for each index tuple of all dimensions but the last.
struct Sequences {
  Dims shape;
  absl::Span<const int64_t> indices;  // [count, rank]
  int64_t count = 0;

  static StatusOr<Sequences> Make(const KernelContext& ctx, int first, string_view name) {
    const Tensor &indices = ctx.input(first), &values = ctx.input(first + 1);
    ASSIGN_OR_RETURN(const Dims shape, IntVector(ctx.input(first + 2), StrCat(name, "_shape")));
    const int64_t rank = static_cast<int64_t>(shape.size());
    if (rank < 2) {
      return InvalidArgument("Input SparseTensors must have rank at least 2, but ", name,
                             "_shape rank is: ", rank);
    }
    if (indices.rank() != 2 || indices.dim(1) != rank || values.rank() != 1 ||
        values.dim(0) != indices.dim(0)) {
      return InvalidArgument("Expected ", name, "_indices [n, ", rank, "] and ", name,
                             "_values [n], their shapes are ", indices.shape().ToString(), " and ",
                             values.shape().ToString());
    }
    RETURN_IF_ERROR(CheckedProduct(shape).status());
    Sequences s{shape, indices.flat<int64_t>(), indices.dim(0)};
    for (int64_t i = 0; i < s.count; ++i) {
      for (int64_t d = 0; d < rank; ++d) {
        const int64_t at = s.indices[i * rank + d];
        if (at < 0 || at >= shape[d]) {
          return InvalidArgument(name, "_indices[", i, ",", d, "] = ", at, " is not in [0, ",
                                 shape[d], ")");
        }
      }
    }
    return s;
  }

  // Returns the index of element i's sequence in an output of shape `dims`.
  int64_t Place(int64_t i, absl::Span<const int64_t> dims) const {
    int64_t place = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      place = place * dims[d] + indices[i * shape.size() + d];
    }
    return place;
  }

  // Returns the elements sorted by sequence; within a sequence they keep their order.
  std::vector<std::pair<int64_t, int64_t>> SortedBySequence(absl::Span<const int64_t> dims) const {
    std::vector<std::pair<int64_t, int64_t>> elements(count);
    for (int64_t i = 0; i < count; ++i) elements[i] = {Place(i, dims), i};
    std::sort(elements.begin(), elements.end());
    return elements;
  }
};

// Returns the Levenshtein distance of a sequence of n and one of m elements. `same(i, j)` returns
// whether element i of the first equals element j of the second.
template <class Same>
int64_t Levenshtein(int64_t n, int64_t m, Same same) {
  std::vector<int64_t> row(m + 1);
  for (int64_t j = 0; j <= m; ++j) row[j] = j;
  for (int64_t i = 1; i <= n; ++i) {
    int64_t diagonal = row[0];
    row[0] = i;
    for (int64_t j = 1; j <= m; ++j) {
      const int64_t changed = diagonal + (same(i - 1, j - 1) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[m];
}

template <class T>
class EditDistanceKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("normalize", &normalize_); }

  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Sequences hypothesis, Sequences::Make(ctx, 0, "hypothesis"));
    ASSIGN_OR_RETURN(const Sequences truth, Sequences::Make(ctx, 3, "truth"));
    if (hypothesis.shape.size() != truth.shape.size()) {
      return InvalidArgument(
          "Expected hypothesis_shape.NumElements == truth_shape.NumElements, are ",
          hypothesis.shape.size(), " and ", truth.shape.size());
    }
    Dims dims;
    for (size_t d = 0; d + 1 < truth.shape.size(); ++d) {
      dims.push_back(std::max(hypothesis.shape[d], truth.shape[d]));
    }
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    Tensor* output;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &output));
    const auto h = hypothesis.SortedBySequence(dims), t = truth.SortedBySequence(dims);
    const T *h_values = ctx.input(1).data<T>(), *t_values = ctx.input(4).data<T>();
    size_t i = 0, j = 0;
    for (int64_t place = 0; place < shape.num_elements(); ++place) {
      size_t i_end = i, j_end = j;
      while (i_end < h.size() && h[i_end].first == place) ++i_end;
      while (j_end < t.size() && t[j_end].first == place) ++j_end;
      const int64_t distance =
          Levenshtein(Length(j, j_end), Length(i, i_end), [&](int64_t a, int64_t b) {
            return t_values[t[j + a].second] == h_values[h[i + b].second];
          });
      output->mutable_data<float>()[place] = Finish(distance, Length(j, j_end));
      i = i_end;
      j = j_end;
    }
    return OkStatus();
  }

 private:
  static int64_t Length(size_t begin, size_t end) { return static_cast<int64_t>(end - begin); }

  // Returns the distance or, if the op normalizes, the distance divided by the truth's length:
  // infinity if only the truth is empty, 0 if both sequences are empty.
  float Finish(int64_t distance, int64_t truth_length) const {
    if (!normalize_ || distance == 0) return static_cast<float>(distance);
    return static_cast<float>(distance) / static_cast<float>(truth_length);
  }

  bool normalize_ = true;
};

Status EditDistanceShape(ShapeScope& s) {
  for (int i : {0, 3}) RETURN_IF_ERROR(s.WithRank(i, 2).status());
  for (int i : {1, 2, 4, 5}) RETURN_IF_ERROR(s.WithRank(i, 1).status());
  std::vector<int64_t> hypothesis, truth;
  if (!s.ConstantInts(2, &hypothesis) || !s.ConstantInts(5, &truth)) return UnknownShape(s);
  if (hypothesis.size() != truth.size() || truth.size() < 2) {
    return InvalidArgument("hypothesis_shape and truth_shape must be of one rank, 2 or more, are ",
                           hypothesis.size(), " and ", truth.size());
  }
  Dims dims;
  for (size_t d = 0; d + 1 < truth.size(); ++d) dims.push_back(std::max(hypothesis[d], truth[d]));
  return SetOutput(s, 0, dims);
}

const DTypes kTypes = {DType::kFloat, DType::kDouble, DType::kHalf,   DType::kBfloat16,
                       DType::kInt8,  DType::kInt16,  DType::kInt32,  DType::kInt64,
                       DType::kUint8, DType::kUint16, DType::kUint32, DType::kUint64,
                       DType::kBool,  DType::kString};

}  // namespace

OP(EditDistance) {
  return {
      .doc =
          "Computes the Levenshtein distance between the sequences in the last dimension of two "
          "sparse tensors. With `normalize`, each distance is divided by the length of the "
          "sequence in the truth.",
      .inputs = {{"hypothesis_indices", "int64"},
                 {"hypothesis_values", "T"},
                 {"hypothesis_shape", "int64"},
                 {"truth_indices", "int64"},
                 {"truth_values", "T"},
                 {"truth_shape", "int64"}},
      .outputs = {{"output", "float"}},
      .types = {{"T", kTypes}},
      .attrs = {{"normalize", AttrValue(true)}},
      .shape = EditDistanceShape,
      .gradient = NoGradient,
      .examples = {{.inputs = {{{{2, 2}, {0, 0, 1, 1}}},
                               {{{2}, {1, 2}}},
                               {{{2}, {2, 2}}},
                               {{{1, 2}, {0, 0}}},
                               {{{1}, {2}}},
                               {{{2}, {2, 2}}}}}},
  };
}
KERNEL(EditDistance, EditDistanceKernel, float, double, half, bfloat16, int8_t, int16_t, int32_t,
       int64_t, uint8_t, uint16_t, uint32_t, uint64_t, bool, std::string);

}  // namespace penstock
