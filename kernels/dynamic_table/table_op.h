// SPDX-License-Identifier: Apache-2.0
//
// Definitions shared by the ops that use a DynamicTable.
#pragma once

#include <utility>
#include <vector>

#include "core/op/gradient.h"
#include "core/op/kernel.h"
#include "core/op/shape_scope.h"
#include "kernels/dynamic_table/dynamic_table.h"

namespace penstock {

inline constexpr int64_t kTableBucketsMax = 1 << 20;

inline DynamicTable::Caller TableCaller(const KernelContext& ctx) {
  return {ctx.allocator(), ctx.threads(), ctx.origin()};
}

// Defines an op whose first input is a table's handle, followed by `inputs`.
inline OpDef TableOp(const char* doc, std::vector<ArgDef> inputs, std::vector<ArgDef> outputs) {
  inputs.insert(inputs.begin(), ArgDef{"table", "resource"});
  return {.doc = doc,
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .shape = UnknownShape,
          .gradient = NoGradient,
          .stateful = true,
          .untestable_alone = "works on a dynamic table: kernels/dynamic_table has its tests"};
}

}  // namespace penstock
