// SPDX-License-Identifier: Apache-2.0
//
// AddSparseToTensorsMap, AddManySparseToTensorsMap, TakeManySparseFromTensorsMap: put sparse
// tensors into a map, so that queues can hold their handles (the numbers of their entries), and
// take them out as a batch.
#include <utility>

#include "kernels/sparse/forms.h"
#include "kernels/sparse/rows.h"
#include "kernels/sparse/tensors_map.h"

namespace penstock {
namespace {

// The maximum number of rows that one AddManySparseToTensorsMap adds. Rows without values take
// memory, too, so a small tensor could claim any number of rows.
constexpr int64_t kRowsMax = 1 << 20;

// Nodes with the same container and shared_name use the same map. As in TensorFlow, a node without
// shared_name uses the map that has the node's name in the shared container:
// TakeManySparseFromTensorsMap has that name as its shared_name.
class TensorsMapKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) final {
    RETURN_IF_ERROR(node.Attr("container", &container_));
    RETURN_IF_ERROR(node.Attr("shared_name", &name_));
    if (name_.empty()) name_ = node.name;
    return OkStatus();
  }

 protected:
  StatusOr<std::shared_ptr<SparseTensorsMap>> Find(KernelContext& ctx) const {
    const auto make = [this]() -> StatusOr<std::shared_ptr<Resource>> {
      return std::make_shared<SparseTensorsMap>(name_);
    };
    ASSIGN_OR_RETURN(std::shared_ptr<Resource> found,
                     ctx.resources().LookupOrCreate(container_, name_, SparseTensorsMap::kType,
                                                    make, ctx.origin()));
    return std::static_pointer_cast<SparseTensorsMap>(std::move(found));
  }

 private:
  std::string container_, name_;
};

class AddSparseKernel final : public TensorsMapKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const SparseTensor x, SparseTensor::FromInputs(ctx, 0, "sparse"));
    ASSIGN_OR_RETURN(const auto map, Find(ctx));
    const int64_t number = map->Add({{x.indices(), x.values(), ctx.input(2)}}, ctx.origin());
    ctx.SetOutput(0, Tensor::Scalar(number));
    return OkStatus();
  }
};

class AddManySparseKernel final : public TensorsMapKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ASSIGN_OR_RETURN(const SparseTensor x, SparseTensor::FromInputs(ctx, 0, "sparse"));
    ASSIGN_OR_RETURN(const int64_t rows, CountSparseRows(x));
    if (rows > kRowsMax) {
      return InvalidArgument("sparse_shape[0] must be at most ", kRowsMax, ", is ", rows);
    }
    Tensor* numbers;
    RETURN_IF_ERROR(ctx.Allocate(0, Shape{rows}, &numbers));
    const Tensor shape = Tensor::Vector<int64_t>({x.shape().begin() + 1, x.shape().end()});
    std::vector<SparseTensorsMap::Entry> entries;
    RETURN_IF_ERROR(ForEachSparseRow(x, [&](int64_t, Tensor indices, Tensor values) {
      entries.push_back({std::move(indices), std::move(values), shape});
      return OkStatus();
    }));
    ASSIGN_OR_RETURN(const auto map, Find(ctx));
    const int64_t first = map->Add(std::move(entries), ctx.origin());
    for (int64_t i = 0; i < rows; ++i) numbers->mutable_data<int64_t>()[i] = first + i;
    return OkStatus();
  }
};

class TakeManySparseKernel final : public TensorsMapKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& numbers = ctx.input(0);
    if (numbers.rank() != 1) {
      return InvalidArgument("sparse_handles should be a vector but received shape ",
                             numbers.shape().ToString());
    }
    if (numbers.dim(0) == 0) {
      return InvalidArgument("Must have at least 1 serialized SparseTensor, but input has shape ",
                             numbers.shape().ToString());
    }
    ASSIGN_OR_RETURN(const auto map, Find(ctx));
    ASSIGN_OR_RETURN(const auto entries, map->Take(numbers.flat<int64_t>(), ctx.origin()));
    const DType wanted = ctx.output_type(1).dtype;
    std::vector<SparseTensor> parts;
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto& [indices, values, shape] = entries[i];
      if (values.dtype() != wanted) {
        return InvalidArgument("Requested SparseTensor of type ", Name(wanted),
                               " but SparseTensor[", i,
                               "].values.dtype() == ", Name(values.dtype()));
      }
      ASSIGN_OR_RETURN(SparseTensor part,
                       SparseTensor::Make(indices, values, shape, StrCat("SparseTensor[", i, "]")));
      parts.push_back(std::move(part));
    }
    return WriteSparseStack(ctx, numbers.shape().dims(), parts);
  }
};

Status AddShape(ShapeScope& s) {
  RETURN_IF_ERROR(SparseInputRank(s, 0).status());
  s.set_output(0, PartialShape{});
  return OkStatus();
}

Status AddManyShape(ShapeScope& s) {
  RETURN_IF_ERROR(SparseInputRank(s, 0).status());
  std::vector<int64_t> shape;
  const bool known = s.ConstantInts(2, &shape) && !shape.empty() && shape[0] >= 0;
  s.set_output(0, PartialShape{known ? shape[0] : -1});
  return OkStatus();
}

Status TakeManyShape(ShapeScope& s) {
  RETURN_IF_ERROR(s.WithRank(0, 1).status());
  SetSparseOutput(s, 0, -1, -1);
  return OkStatus();
}

OpDef AddOp(const char* doc, const char* output, ShapeFn shape) {
  return {
      .doc = doc,
      .inputs = SparseArgs("sparse"),
      .outputs = {{output, "int64"}},
      .types = {{"T", kAllTypes}},
      .attrs = {{"container", ""}, {"shared_name", ""}},
      .shape = std::move(shape),
      .gradient = NoGradient,
      .examples = {{.inputs = SparseExample()}},
      .stateful = true,
  };
}

}  // namespace

OP(AddSparseToTensorsMap) {
  return AddOp(
      "Adds a sparse tensor to a map, and returns the number under which the map holds it.",
      "sparse_handle", AddShape);
}

OP(AddManySparseToTensorsMap) {
  return AddOp(
      "Adds each row of a sparse tensor to a map, and returns the numbers under which the map "
      "holds them.",
      "sparse_handles", AddManyShape);
}

OP(TakeManySparseFromTensorsMap) {
  return {
      .doc =
          "Removes sparse tensors from the map of AddSparseToTensorsMap, and stacks them along a "
          "new first dimension. shared_name must be the shared_name of the node that added them "
          "or, if that is empty, the name of that node.",
      .inputs = {{"sparse_handles", "int64"}},
      .outputs = {{"sparse_indices", "int64"},
                  {"sparse_values", "dtype"},
                  {"sparse_shape", "int64"}},
      .types = {{"dtype", kAllTypes}},
      .attrs = {{"container", ""}, {"shared_name", ""}},
      .shape = TakeManyShape,
      .gradient = NoGradient,
      .stateful = true,
      .untestable_alone = "takes what another op added: kernels/sparse has its tests",
  };
}
KERNEL_ANY_TYPE(AddSparseToTensorsMap, AddSparseKernel);
KERNEL_ANY_TYPE(AddManySparseToTensorsMap, AddManySparseKernel);
KERNEL_ANY_TYPE(TakeManySparseFromTensorsMap, TakeManySparseKernel);

}  // namespace penstock
