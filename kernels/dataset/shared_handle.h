// SPDX-License-Identifier: Apache-2.0
//
// Ops that return a handle to an object that several datasets share (seeds, a cache), and ops that
// delete the object. No ResourceStore holds the object; it lives as long as its handles.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/op/kernel.h"
#include "core/op/op_def.h"
#include "core/op/resource.h"

namespace penstock {

// Returns a scalar handle to `resource`. If `resource` is null, a dataset with this handle makes an
// object of its own. Borrows `type`.
Tensor SharedHandle(const KernelContext& ctx, std::string name, const char* type,
                    std::shared_ptr<Resource> resource);

// Returns the definition of an op that returns a handle.
OpDef SharedHandleOp(const char* doc, std::vector<ArgDef> inputs, std::vector<ArgDef> outputs);

// The kernel and the definition of an op that deletes an object. It does nothing, because the
// object is deleted with its last handle.
class DeleteSharedKernel final : public Kernel {
 public:
  Status Compute(KernelContext&) override { return OkStatus(); }
};
OpDef DeleteSharedOp(const char* doc);

}  // namespace penstock
