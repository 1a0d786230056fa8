// SPDX-License-Identifier: Apache-2.0
//
// StagingKernel: the base of the kernels of staging areas and staging maps. Nodes with the same
// container and shared_name use the same area or map; a node without shared_name has its own in
// each session.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/op/kernel.h"
#include "core/op/private_attrs.h"
#include "kernels/data/staging_area.h"

namespace penstock {

// `Area` is a Resource with a member limits().
template <class Area>
class StagingKernel : public AsyncKernel {
 public:
  Status Init(const KernelInit& node) final {
    RETURN_IF_ERROR(node.Attr("container", &container_));
    RETURN_IF_ERROR(node.Attr("shared_name", &name_));
    RETURN_IF_ERROR(node.Attr("capacity", &limits_.elements));
    RETURN_IF_ERROR(node.Attr("memory_limit", &limits_.bytes));
    RETURN_IF_ERROR(node.Attr("dtypes", &dtypes_));
    if (!name_.empty()) return OkStatus();
    name_ = node.name;
    if (!node.attrs.contains(kPrivateContainerAttr)) return OkStatus();
    return node.Attr(kPrivateContainerAttr, &container_);
  }

  void ComputeAsync(KernelContext& ctx, Done done) final {
    auto area = Find(ctx);
    if (!area.ok()) return std::move(done)(area.status());
    Use(**area, ctx, std::move(done));
  }

 protected:
  // `type` is TypeName() of the resource, and must never be freed.
  explicit StagingKernel(const char* type) : type_(type) {}

  virtual std::shared_ptr<Area> Make(const std::string& name,
                                     const StagingArea::Limits& limits) const = 0;
  virtual void Use(Area& area, KernelContext& ctx, Done done) const = 0;

  const std::vector<DType>& dtypes() const { return dtypes_; }

 private:
  StatusOr<std::shared_ptr<Area>> Find(KernelContext& ctx) const {
    const auto make = [&] { return Make(name_, limits_); };
    ASSIGN_OR_RETURN(std::shared_ptr<Resource> found,
                     ctx.resources().LookupOrCreate(container_, name_, type_, make, ctx.origin()));
    auto area = std::static_pointer_cast<Area>(std::move(found));
    if (area->limits() == limits_) return area;
    return InvalidArgument("staging area '", name_, "' exists already, with capacity ",
                           area->limits().elements, " and memory_limit ", area->limits().bytes,
                           " where this node says ", limits_.elements, " and ", limits_.bytes);
  }

  const char* const type_;
  std::string container_, name_;
  StagingArea::Limits limits_;
  std::vector<DType> dtypes_;
};

// Returns an op with the attributes that all these kernels read. `min_types`: the least number of
// dtypes.
OpDef StagingOp(const char* doc, int64_t min_types);

}  // namespace penstock
