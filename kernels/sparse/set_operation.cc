// SPDX-License-Identifier: Apache-2.0
//
// Operations on sets: DenseToDenseSetOperation, DenseToSparseSetOperation,
// SparseToSparseSetOperation, SetSize. The values along the last dimension form a set; the other
// dimensions are the index of the set, called its group.
#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "kernels/sparse/forms.h"
#include "kernels/sparse/sparse_tensor.h"

namespace penstock {
namespace {

const DTypes kSetTypes = {DType::kInt8,  DType::kInt16,  DType::kInt32, DType::kInt64,
                          DType::kUint8, DType::kUint16, DType::kString};

// The elements of a set, sorted, without duplicates.
template <class T>
using Set = std::vector<T>;
// The sets by row-major index of their group; groups without values are left out.
template <class T>
struct Sets {
  Dims group_shape;
  std::map<int64_t, Set<T>> sets;
};

template <class T>
void Normalize(Sets<T>* sets) {
  for (auto& [group, set] : sets->sets) {
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
  }
}

Status CheckRank(int64_t rank) {
  if (rank >= 2) return OkStatus();
  return InvalidArgument("Invalid rank ", rank, ": sets need a group and values, 2 dimensions");
}

template <class T>
StatusOr<Sets<T>> DenseSets(const Tensor& values) {
  RETURN_IF_ERROR(CheckRank(values.rank()));
  Sets<T> sets;
  const auto dims = values.shape().dims();
  sets.group_shape.assign(dims.begin(), dims.end() - 1);
  const int64_t length = dims.back(), groups = length == 0 ? 0 : values.num_elements() / length;
  for (int64_t g = 0; g < groups; ++g) {
    const T* first = values.data<T>() + g * length;
    sets.sets[g].assign(first, first + length);
  }
  Normalize(&sets);
  return sets;
}

// Reads the sparse tensor whose indices, values and shape are the inputs `first` to `first` + 2.
// `validate` also checks that its places are in order.
template <class T>
StatusOr<Sets<T>> SparseSets(const KernelContext& ctx, int first, string_view name, bool validate) {
  ASSIGN_OR_RETURN(const SparseTensor x, SparseTensor::FromInputs(ctx, first, name));
  RETURN_IF_ERROR(CheckRank(x.rank()));
  RETURN_IF_ERROR(validate ? x.CheckOrder() : x.CheckBounds());
  Sets<T> sets;
  sets.group_shape.assign(x.shape().begin(), x.shape().end() - 1);
  for (int64_t i = 0; i < x.size(); ++i) {
    int64_t group = 0;  // cannot overflow, because CheckBounds keeps it below the shape's product
    for (int d = 0; d + 1 < x.rank(); ++d) group = group * x.shape()[d] + x.place(i)[d];
    sets.sets[group].push_back(x.values().template data<T>()[i]);
  }
  Normalize(&sets);
  return sets;
}

enum class SetOperation { kAMinusB, kBMinusA, kIntersection, kUnion };

StatusOr<SetOperation> ParseOperation(const std::string& text) {
  const std::string lower = absl::AsciiStrToLower(text);
  if (lower == "a-b") return SetOperation::kAMinusB;
  if (lower == "b-a") return SetOperation::kBMinusA;
  if (lower == "intersection") return SetOperation::kIntersection;
  if (lower == "union") return SetOperation::kUnion;
  return InvalidArgument("Invalid set_operation ", text,
                         ": expected a-b, b-a, intersection or union");
}

template <class T>
Set<T> Apply(SetOperation operation, const Set<T>& a, const Set<T>& b) {
  Set<T> result;
  const auto out = std::back_inserter(result);
  switch (operation) {
    case SetOperation::kAMinusB:
      std::set_difference(a.begin(), a.end(), b.begin(), b.end(), out);
      break;
    case SetOperation::kBMinusA:
      std::set_difference(b.begin(), b.end(), a.begin(), a.end(), out);
      break;
    case SetOperation::kIntersection:
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), out);
      break;
    case SetOperation::kUnion:
      std::set_union(a.begin(), a.end(), b.begin(), b.end(), out);
      break;
  }
  return result;
}

template <class T>
StatusOr<Sets<T>> Combine(SetOperation operation, const Sets<T>& a, const Sets<T>& b) {
  if (a.group_shape != b.group_shape) {
    return InvalidArgument("Mismatched shapes ", ToString(a.group_shape), " vs ",
                           ToString(b.group_shape), " of the groups of set1 and set2");
  }
  Sets<T> result{.group_shape = a.group_shape, .sets = {}};
  static const Set<T> kEmpty;
  const auto find = [](const Sets<T>& sets, int64_t group) -> const Set<T>& {
    const auto found = sets.sets.find(group);
    return found == sets.sets.end() ? kEmpty : found->second;
  };
  for (const Sets<T>* sets : {&a, &b}) {
    for (const auto& [group, set] : sets->sets) {
      if (result.sets.contains(group)) continue;
      Set<T> values = Apply(operation, find(a, group), find(b, group));
      if (!values.empty()) result.sets.emplace(group, std::move(values));
    }
  }
  return result;
}

// Writes outputs 0 to 2: a sparse tensor whose last dimension is the size of the largest set.
template <class T>
Status WriteSets(KernelContext& ctx, const Sets<T>& sets) {
  int64_t n = 0, largest = 0;
  for (const auto& [group, set] : sets.sets) {
    n += static_cast<int64_t>(set.size());
    largest = std::max(largest, static_cast<int64_t>(set.size()));
  }
  const auto group_rank = static_cast<int64_t>(sets.group_shape.size());
  Tensor *indices, *values;
  RETURN_IF_ERROR(ctx.Allocate(0, Shape{n, group_rank + 1}, &indices));
  RETURN_IF_ERROR(ctx.Allocate(1, Shape{n}, &values));
  int64_t* place = indices->mutable_data<int64_t>();
  T* value = values->mutable_data<T>();
  for (const auto& [group, set] : sets.sets) {
    for (size_t i = 0; i < set.size(); ++i, place += group_rank + 1) {
      int64_t rest = group;
      for (int64_t d = group_rank - 1; d >= 0; --d) {
        place[d] = rest % sets.group_shape[d];
        rest /= sets.group_shape[d];
      }
      place[group_rank] = static_cast<int64_t>(i);
      *value++ = set[i];
    }
  }
  Dims shape = sets.group_shape;
  shape.push_back(largest);
  return WriteVector(ctx, 2, shape);
}

enum class SetForm { kDenseDense, kDenseSparse, kSparseSparse };

template <SetForm kForm>
struct SetOperationOp {
  template <class T>
  class Kernel final : public penstock::Kernel {
   public:
    Status Init(const KernelInit& node) override {
      std::string operation;
      RETURN_IF_ERROR(node.Attr("set_operation", &operation));
      ASSIGN_OR_RETURN(operation_, ParseOperation(operation));
      return node.Attr("validate_indices", &validate_);
    }
    Status Compute(KernelContext& ctx) override {
      constexpr bool kSparse1 = kForm == SetForm::kSparseSparse;
      constexpr bool kSparse2 = kForm != SetForm::kDenseDense;
      ASSIGN_OR_RETURN(const Sets<T> a, kSparse1 ? SparseSets<T>(ctx, 0, "set1", validate_)
                                                 : DenseSets<T>(ctx.input(0)));
      constexpr int kSecond = kSparse1 ? 3 : 1;
      ASSIGN_OR_RETURN(const Sets<T> b, kSparse2 ? SparseSets<T>(ctx, kSecond, "set2", validate_)
                                                 : DenseSets<T>(ctx.input(1)));
      ASSIGN_OR_RETURN(const Sets<T> result, Combine(operation_, a, b));
      return WriteSets(ctx, result);
    }

   private:
    SetOperation operation_ = SetOperation::kUnion;
    bool validate_ = true;
  };
};

template <class T>
class SetSizeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override { return node.Attr("validate_indices", &validate_); }
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const Sets<T> sets, SparseSets<T>(ctx, 0, "set", validate_));
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sets.group_shape));
    Tensor* sizes;
    RETURN_IF_ERROR(ctx.Allocate(0, shape, &sizes));
    int32_t* const out = sizes->mutable_data<int32_t>();
    std::fill_n(out, shape.num_elements(), 0);
    for (const auto& [group, set] : sets.sets) out[group] = static_cast<int32_t>(set.size());
    return OkStatus();
  }

 private:
  bool validate_ = true;
};

// Sets the shapes of a sparse result whose rank is that of the sets, if the rank of either is
// known. InvalidArgument if their ranks differ.
Status SetOperationShape(ShapeScope& s) {
  int64_t rank = -1;
  const auto learn = [&](int64_t known) -> Status {
    if (known < 0) return OkStatus();
    RETURN_IF_ERROR(CheckRank(known));
    if (rank >= 0 && rank != known) {
      return InvalidArgument("set1 has rank ", rank, ", set2 has rank ", known);
    }
    rank = known;
    return OkStatus();
  };
  const int dense = s.num_inputs() == 2 ? 2 : s.num_inputs() == 4 ? 1 : 0;
  for (int i = 0; i < dense; ++i) RETURN_IF_ERROR(learn(s.input(i).rank()));
  for (int i = dense; i + 2 < s.num_inputs(); i += 3) {
    ASSIGN_OR_RETURN(const int64_t known, SparseInputRank(s, i));
    RETURN_IF_ERROR(learn(known));
  }
  SetSparseOutput(s, 0, -1, rank);
  return OkStatus();
}

Status SetSizeShape(ShapeScope& s) {
  ASSIGN_OR_RETURN(const int64_t rank, SparseInputRank(s, 0));
  if (rank < 0) return UnknownShape(s);
  RETURN_IF_ERROR(CheckRank(rank));
  s.set_output(0, PartialShape::UnknownOfRank(static_cast<int>(rank) - 1));
  return OkStatus();
}

OpDef SetOperationDef(const char* doc, std::vector<ArgDef> inputs, ExampleArgs example) {
  return {
      .doc = doc,
      .inputs = std::move(inputs),
      .outputs = SparseArgs("result"),
      .types = {{"T", kSetTypes}},
      .attrs = {{"set_operation", Strings{}}, {"validate_indices", true}},
      .shape = SetOperationShape,
      .gradient = NoGradient,
      .examples = {{.inputs = example, .attrs = {{"set_operation", "union"}}},
                   {.inputs = example, .attrs = {{"set_operation", "a-b"}}}},
  };
}

const ExampleArgs kDenseSet = {{{{2, 2}}}};

}  // namespace

OP(DenseToDenseSetOperation) {
  return SetOperationDef(
      "Returns the difference, intersection or union of sets; each row of a tensor is a "
      "set.",
      {{"set1", "T"}, {"set2", "T"}}, Join(kDenseSet, kDenseSet));
}

OP(DenseToSparseSetOperation) {
  return SetOperationDef("The same as DenseToDenseSetOperation, with a sparse second input.",
                         Join({{"set1", "T"}}, SparseArgs("set2")),
                         Join(kDenseSet, SparseExample()));
}

OP(SparseToSparseSetOperation) {
  return SetOperationDef("The same as DenseToDenseSetOperation, with sparse inputs.",
                         Join(SparseArgs("set1"), SparseArgs("set2")),
                         Join(SparseExample(), OtherSparseExample()));
}
#define PENSTOCK_SET_KERNELS(Op, Kernel) \
  KERNEL(Op, Kernel, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, std::string)
PENSTOCK_SET_KERNELS(DenseToDenseSetOperation, SetOperationOp<SetForm::kDenseDense>::Kernel);
PENSTOCK_SET_KERNELS(DenseToSparseSetOperation, SetOperationOp<SetForm::kDenseSparse>::Kernel);
PENSTOCK_SET_KERNELS(SparseToSparseSetOperation, SetOperationOp<SetForm::kSparseSparse>::Kernel);

OP(SetSize) {
  return {
      .doc = "Counts the distinct values of each set.",
      .inputs = SparseArgs("set"),
      .outputs = {{"size", "int32"}},
      .types = {{"T", kSetTypes}},
      .attrs = {{"validate_indices", true}},
      .shape = SetSizeShape,
      .gradient = NoGradient,
      .examples = {{.inputs = SparseExample()}},
  };
}
PENSTOCK_SET_KERNELS(SetSize, SetSizeKernel);
#undef PENSTOCK_SET_KERNELS

}  // namespace penstock
