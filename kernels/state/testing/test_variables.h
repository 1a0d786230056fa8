// SPDX-License-Identifier: Apache-2.0
//
// TestVariables: variables for tests of ops.
#pragma once

#include <memory>
#include <string>

#include "core/base/check.h"
#include "core/op/resource.h"
#include "core/op/testing/op_runner.h"
#include "core/op/variable.h"

namespace penstock {

class TestVariables {
 public:
  // Returns a runner of an op that can use the variables.
  OpRunner Op(string_view op) { return OpRunner(op, store_); }

  // Creates a variable with VarHandleOp or VariableV2 and returns its handle.
  Tensor Handle(const std::string& name, DType dtype, PartialShape shape, bool ref = false) {
    auto handle = Op(ref ? "VariableV2" : "VarHandleOp")
                      .Attr("dtype", dtype)
                      .Attr("shape", std::move(shape))
                      .Attr("shared_name", name)
                      .Run1();
    CHECK_OK(handle.status());
    return *std::move(handle);
  }
  // Creates a variable, assigns `value` and returns the handle.
  Tensor New(const Tensor& value, bool ref = false) {
    const std::string name = StrCat("v", next_++);
    const Tensor handle = Handle(name, value.dtype(), value.shape(), ref);
    CHECK_OK(Op(ref ? "Assign" : "AssignVariableOp").In(handle).In(value.Clone()).Run().status());
    return handle;
  }

  static Variable& Get(const Tensor& handle) {
    return static_cast<Variable&>(*handle.scalar<ResourceHandle>().resource);
  }
  static Tensor Value(const Tensor& handle) {
    auto value = Get(handle).Read();
    CHECK_OK(value.status());
    return *std::move(value);
  }

  const std::shared_ptr<ResourceStore>& store() const { return store_; }

 private:
  std::shared_ptr<ResourceStore> store_ = std::make_shared<ResourceStore>();
  int next_ = 0;
};

}  // namespace penstock
