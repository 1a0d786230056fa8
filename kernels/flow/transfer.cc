// SPDX-License-Identifier: Apache-2.0
//
// _Send, _Recv and their host variants: the two ends of a cut edge. Both work on host memory; on a
// GPU the executor copies to and from the device. When the step is cancelled, the executor aborts
// the rendezvous, which ends the wait for a value.
#include <optional>
#include <utility>

#include "core/op/gradient.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"
#include "core/runtime/rendezvous.h"

namespace penstock {
namespace {

StatusOr<HashedKey> KeyOf(const KernelInit& node) {
  RendezvousKey key;
  int64_t incarnation = 0;
  RETURN_IF_ERROR(node.Attr("tensor_name", &key.tensor));
  RETURN_IF_ERROR(node.Attr("send_device", &key.src_device));
  RETURN_IF_ERROR(node.Attr("send_device_incarnation", &incarnation));
  RETURN_IF_ERROR(node.Attr("recv_device", &key.dst_device));
  key.src_incarnation = static_cast<uint64_t>(incarnation);
  return HashedKey(std::move(key));
}

HashedKey KeyInIteration(const HashedKey& key, const KernelContext& ctx) {
  return ctx.frame() == 0 ? key : key.In(ctx.frame(), ctx.iteration());
}

Status NoRendezvous() {
  return FailedPrecondition("this step has no rendezvous, so nothing can be sent or received");
}

class SendKernel final : public Kernel {
 public:
  Status Init(const KernelInit& node) override {
    ASSIGN_OR_RETURN(key_, KeyOf(node));
    return OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    if (ctx.step().rendezvous == nullptr) return NoRendezvous();
    Tensor value = ctx.TakeInput(0);
    const bool is_dead = !value.valid();
    return ctx.step().rendezvous->Send(KeyInIteration(*key_, ctx), std::move(value), is_dead);
  }
  int64_t CostNanos() const override { return 500; }

 private:
  std::optional<HashedKey> key_;
};

class RecvKernel final : public AsyncKernel {
 public:
  Status Init(const KernelInit& node) override {
    ASSIGN_OR_RETURN(key_, KeyOf(node));
    return OkStatus();
  }

  void ComputeAsync(KernelContext& ctx, Done done) override {
    Rendezvous* const rendezvous = ctx.step().rendezvous;
    if (rendezvous == nullptr) return std::move(done)(NoRendezvous());
    rendezvous->Recv(
        KeyInIteration(*key_, ctx),
        [&ctx, done = std::move(done)](Status status, Tensor value, bool is_dead) mutable {
          // If the value is dead, does not set the output: an output that is not set is a dead
          // value.
          if (status.ok() && !is_dead) ctx.SetOutput(0, std::move(value));
          std::move(done)(std::move(status));
        });
  }

 private:
  std::optional<HashedKey> key_;
};

OpDef TransferOp(std::string doc, bool send) {
  OpDef op = {.doc = std::move(doc),
              .attrs = {{"tensor_name", Strings{}},
                        {"send_device", Strings{}},
                        {"send_device_incarnation", Ints{}},
                        {"recv_device", Strings{}},
                        {"client_terminated", false}},
              .gradient = NoGradient,
              .stateful = true,
              .end = send ? EndOp::kSend : EndOp::kRecv,
              .runs_dead = send};
  if (send) {
    op.inputs = {{"tensor", "T"}};
    op.types = {{"T", kAnyType}};
    op.shape = NoOutputs;
  } else {
    op.outputs = {{"tensor", "tensor_type"}};
    op.types = {{"tensor_type", kAnyType}};
    op.shape = UnknownShape;
  }
  return op;
}

OP(_Send) {
  return TransferOp("Sends a tensor to the _Recv of the same name on another device.", true);
}

OP(_Recv) {
  return TransferOp("Receives the tensor that the _Send of the same name sends.", false);
}
OP(_HostSend) { return TransferOp("The same as _Send, from host memory on every device.", true); }
OP(_HostRecv) { return TransferOp("The same as _Recv, into host memory on every device.", false); }
KERNEL_ANY_TYPE(_Send, SendKernel);
KERNEL_ANY_TYPE(_Recv, RecvKernel);
KERNEL_ANY_TYPE(_HostSend, SendKernel);
KERNEL_ANY_TYPE(_HostRecv, RecvKernel);
KERNEL_DEF({.op = "_Send", .device = "GPU", .host_args = {"tensor"}, .make = Make<SendKernel>});
KERNEL_DEF({.op = "_Recv", .device = "GPU", .host_args = {"tensor"}, .make = Make<RecvKernel>});
KERNEL_DEF({.op = "_HostSend", .device = "GPU", .host_args = {"tensor"}, .make = Make<SendKernel>});
KERNEL_DEF({.op = "_HostRecv", .device = "GPU", .host_args = {"tensor"}, .make = Make<RecvKernel>});

}  // namespace
}  // namespace penstock
