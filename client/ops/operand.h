// SPDX-License-Identifier: Apache-2.0
//
// Operand: an argument of a generated op function: a tensor, or numbers that become a constant.
//
//   ops::Greater(x, 0.5);  ops::Mean(x, {0, 1});  ops::Reshape(x, {-1, 4});
//
// Numbers get the type that the op requires: the type of the tensors that must have the same type;
// else the op's default; else int32 for integers and float for others. If the type cannot represent
// a number, the graph gets an error. At least one operand must be a tensor, because numbers do not
// name the graph.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "client/ops/located_outputs.h"
#include "core/op/output.h"

namespace penstock::ops {

class Operand {
 public:
  Operand(Output output, const char* file = __builtin_FILE(),  // NOLINT
          int line = __builtin_LINE())
      : tensor_(output, file, line) {}
  // A variable, or any other type that converts to an Output.
  template <class T>
  requires(std::convertible_to<const T&, Output> && !std::same_as<T, Output>)
      Operand(const T& value, const char* file = __builtin_FILE(),  // NOLINT
              int line = __builtin_LINE())
      : tensor_(value, file, line) {}
  Operand(bool value) : given_(Tensor::Scalar(value)) {}                    // NOLINT
  Operand(const char* text) : given_(Tensor::Scalar<std::string>(text)) {}  // NOLINT
  Operand(const std::string& text) : given_(Tensor::Scalar(text)) {}        // NOLINT
  template <std::integral T>
  Operand(T value) : given_(Tensor::Scalar<int64_t>(value)) {}  // NOLINT
  template <std::floating_point T>
  Operand(T value) : given_(Tensor::Scalar<double>(value)) {}  // NOLINT
  // Makes a vector.
  template <std::integral T>
  Operand(std::initializer_list<T> values)  // NOLINT
      : given_(Tensor::Vector<int64_t>({values.begin(), values.end()})) {}
  Operand(std::initializer_list<double> values)  // NOLINT
      : given_(Tensor::Vector<double>(values)) {}
  // A constant with exactly this type.
  Operand(Tensor value) : given_(std::move(value)), exact_(true) {}  // NOLINT

  bool is_tensor() const { return !given_.valid(); }
  // Returns the tensor, with the line of the call of the op's function. REQUIRES is_tensor().
  const LocatedOutput& tensor() const { return tensor_; }
  // Returns the numbers as a tensor of `dtype` (kInvalid: any type). InvalidArgument if `dtype`
  // cannot represent them.
  StatusOr<Tensor> ValueAs(DType dtype) const;

 private:
  LocatedOutput tensor_;
  Tensor given_;        // of type int64, double, bool or string
  bool exact_ = false;  // the constant keeps the type of `given_`
};

// An input of an op, and its required type: the dtype of the other inputs whose type attribute is
// `type`; if there are none, `dtype` (kInvalid: any type).
struct TypedInput {
  TypedInput(const Operand& operand, const char* type, DType dtype = DType::kInvalid)
      : operand(&operand), type(type), dtype(dtype) {}
  TypedInput(const LocatedOutputs& list, const char* type, DType dtype = DType::kInvalid)
      : list(&list), type(type), dtype(dtype) {}
  const Operand* operand = nullptr;
  const LocatedOutputs* list = nullptr;  // set if the input is a list, not an operand
  const char* type;
  DType dtype;
};

// Returns the inputs of `op`, for generated functions. Numbers become constants of `graph` (null:
// of the graph of an input that has a tensor). The next node gets the source line of `graph`; if
// `graph` is null, the line of the first input that has a tensor.
std::vector<NodeInput> AsInputs(const LocatedSink* graph, const char* op,
                                std::initializer_list<TypedInput> inputs);

}  // namespace penstock::ops
