// SPDX-License-Identifier: Apache-2.0
#include "client/ops/operand.h"

#include <string_view>
#include <type_traits>

#include "core/base/check.h"
#include "core/tensor/numbers.h"
#include "core/tensor/type_lists.h"

namespace penstock::ops {
namespace {

template <class T, class From>
StatusOr<Tensor> Convert(const Tensor& given) {
  std::vector<T> values;
  for (const From value : given.flat<From>()) {
    if (!Represents<T>(value)) return InvalidArgument(value, " is no ", Name(kDTypeOf<T>));
    if constexpr (std::is_arithmetic_v<T>) {
      values.push_back(static_cast<T>(value));
    } else {
      values.push_back(T(static_cast<float>(value)));
    }
  }
  return Tensor::Of<T>(given.shape(), values);
}

// Returns the numbers of `given` as a tensor of `dtype`. InvalidArgument if `dtype` is not a type
// of real numbers, or cannot represent a number. REQUIRES: `given` is int64 or double.
StatusOr<Tensor> NumbersAs(const Tensor& given, DType dtype) {
  StatusOr<Tensor> numbers = InvalidArgument("a number is no ", Name(dtype));
  VisitType<REAL_TYPES>(dtype, [&]<class T>() {
    numbers =
        given.dtype() == DType::kInt64 ? Convert<T, int64_t>(given) : Convert<T, double>(given);
  });
  return numbers;
}

bool IsNumber(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kDouble; }

// Returns the dtype of the tensors among `inputs` whose type attribute is `type`; kInvalid if there
// is none.
DType TypeOfTensors(std::initializer_list<TypedInput> inputs, std::string_view type) {
  for (const TypedInput& input : inputs) {
    if (type.empty() || type != input.type) continue;
    if (input.list != nullptr && input.list->size() > 0) {
      return input.list->outputs().front().dtype();
    }
    if (input.list == nullptr && input.operand->is_tensor())
      return input.operand->tensor().output().dtype();
  }
  return DType::kInvalid;
}

GraphSink* SinkOf(const char* op, std::initializer_list<TypedInput> inputs) {
  for (const TypedInput& input : inputs) {
    if (input.list == nullptr && input.operand->tensor().output().sink != nullptr) {
      return input.operand->tensor().output().sink;
    }
    if (input.list == nullptr) continue;
    for (const Output& output : input.list->outputs()) {
      if (output.sink != nullptr) return output.sink;
    }
  }
  CHECK(false, op, ": no argument knows its graph; make one of the numbers by ops::Const");
  return nullptr;
}

// Sets the source line of the graph's next node.
void NoteLine(const LocatedSink* graph, std::initializer_list<TypedInput> inputs) {
  if (graph != nullptr) {
    graph->Noted();
    return;
  }
  for (const TypedInput& input : inputs) {
    if (input.list != nullptr && input.list->size() > 0) {
      input.list->Noted();
      return;
    }
    if (input.list == nullptr && input.operand->is_tensor()) {
      input.operand->tensor().Noted();
      return;
    }
  }
}

}  // namespace

StatusOr<Tensor> Operand::ValueAs(DType dtype) const {
  if (exact_ || given_.dtype() == dtype) return given_;
  if (!IsNumber(given_.dtype())) {
    if (dtype == DType::kInvalid) return given_;
    return InvalidArgument("a ", Name(given_.dtype()), " is no ", Name(dtype));
  }
  if (dtype == DType::kInvalid) {
    dtype = given_.dtype() == DType::kInt64 ? DType::kInt32 : DType::kFloat;
  }
  return NumbersAs(given_, dtype);
}

std::vector<NodeInput> AsInputs(const LocatedSink* graph, const char* op,
                                std::initializer_list<TypedInput> inputs) {
  std::vector<NodeInput> resolved;
  for (const TypedInput& input : inputs) {
    if (input.list != nullptr) {
      resolved.emplace_back(input.list->outputs());
    } else if (input.operand->is_tensor()) {
      resolved.emplace_back(input.operand->tensor().output());
    } else {
      GraphSink& sink = graph != nullptr ? *graph->sink : *SinkOf(op, inputs);
      const DType tensors = TypeOfTensors(inputs, input.type);
      const auto value = input.operand->ValueAs(tensors == DType::kInvalid ? input.dtype : tensors);
      if (value.ok()) {
        NoteLine(graph, inputs);
        resolved.emplace_back(Constant(sink, *value));
      } else {
        if (sink.status().ok()) sink.Fail(Annotate(value.status(), StrCat("arguments of ", op)));
        resolved.emplace_back(Output{&sink, -1, 0});
      }
    }
  }
  NoteLine(graph, inputs);
  return resolved;
}

}  // namespace penstock::ops
