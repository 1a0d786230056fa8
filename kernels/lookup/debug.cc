// SPDX-License-Identifier: Apache-2.0
//
// Ops that debuggers add to graphs: Copy, CopyHost, DebugIdentity, DebugNanCount.
#include <cmath>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {
namespace {

// Refuses nodes with debug_urls, because these ops do not send tensors to a debugger.
class DebugKernel : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    for (const char* attr : {"debug_ops_spec", "debug_urls"}) {
      if (!node.attrs.contains(attr)) continue;
      std::vector<std::string> urls;
      RETURN_IF_ERROR(node.Attr(attr, &urls));
      if (!urls.empty()) {
        return Unimplemented("publishing tensors to ", attr, " '", urls[0],
                             "': fetch the op's output instead");
      }
    }
    return OkStatus();
  }
};

class CopyKernel final : public DebugKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, ctx.TakeInput(0));
    return OkStatus();
  }
};

template <class T>
int64_t CountNan(const Tensor& x) {
  int64_t count = 0;
  for (const T v : x.flat<T>()) count += v != v;
  return count;
}

class NanCountKernel final : public DebugKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    int64_t count = 0;
    switch (x.dtype()) {
      case DType::kFloat:
        count = CountNan<float>(x);
        break;
      case DType::kDouble:
        count = CountNan<double>(x);
        break;
      case DType::kHalf:
        count = CountNan<half>(x);
        break;
      case DType::kBfloat16:
        count = CountNan<bfloat16>(x);
        break;
      default:  // other types have no NaN
        break;
    }
    ctx.SetOutput(0, Tensor::Vector<int64_t>({count}));
    return OkStatus();
  }
};

OpDef DebugOp(const char* doc, std::vector<AttrDef> attrs) {
  return {
      .doc = doc,
      .inputs = {{"input", "T"}},
      .outputs = {{"output", "T"}},
      .types = {{"T", kAllTypes}},
      .attrs = std::move(attrs),
      .shape = SameShape,
      .allows_uninitialized_input = true,
      .is_view = true,
  };
}

std::vector<AttrDef> CopyAttrs() {
  return {{"tensor_name", ""}, {"debug_ops_spec", StringList{}, std::vector<std::string>{}}};
}

std::vector<AttrDef> WatchAttrs() {
  return {{"device_name", ""},
          {"tensor_name", ""},
          {"debug_urls", StringList{}, std::vector<std::string>{}},
          {"gated_grpc", AttrValue(false)}};
}

OpDef NanCountOp() {
  OpDef op =
      DebugOp("Counts the elements that are NaN; the count is a vector of length 1.", WatchAttrs());
  op.outputs = {{"output", "int64"}};
  op.is_view = false;
  op.shape = [](ShapeScope& s) -> Status {
    s.set_output(0, PartialShape{1});
    return OkStatus();
  };
  return op;
}

}  // namespace

OP(Copy) { return DebugOp("Returns the input, which a debugger can inspect.", CopyAttrs()); }
OP(CopyHost) {
  return DebugOp("Returns the input, copied to host memory, where a debugger can inspect it.",
                 CopyAttrs());
}

OP(DebugIdentity) {
  return DebugOp("Returns the input, which a debugger can fetch.", WatchAttrs());
}
OP(DebugNanCount) { return NanCountOp(); }
KERNEL_ANY_TYPE(Copy, CopyKernel);
KERNEL_ANY_TYPE(CopyHost, CopyKernel);
KERNEL_ANY_TYPE(DebugIdentity, CopyKernel);
KERNEL_ANY_TYPE(DebugNanCount, NanCountKernel);

}  // namespace penstock
