// SPDX-License-Identifier: Apache-2.0
//
// Kernel: the implementation of an op on one kind of device for some types; KernelContext: the
// inputs, outputs and services of one execution of a kernel.
//
//   template <class T>
//   class BiasAdd : public Kernel {
//     Status Init(const KernelInit& node) override { return node.Attr("data_format", &format_); }
//     Status Compute(KernelContext& ctx) override { ... }
//     std::string format_;
//   };
//   KERNEL(BiasAdd, BiasAdd, float, double);
//
// One Kernel object executes one node of one compiled graph in all steps, and several steps may run
// at once. So Compute must not change the object; state belongs in resources. Graphs are not
// trusted: before it touches memory, a kernel itself checks ranks, types, indices and divisors.
// Its errors name the input and its value; the executor adds the node's name.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/done.h"
#include "core/base/scheduler.h"
#include "core/base/status.h"
#include "core/op/attr.h"
#include "core/op/op_def.h"
#include "core/op/resource.h"
#include "core/tensor/tensor.h"

namespace penstock {

class Env;
class Rendezvous;  // core/runtime/rendezvous.h; only kernels/flow uses its members

// The properties of a node that its kernel gets when it is created.
struct KernelInit {
  const std::string& name;  // the node's name
  const OpDef& op;
  const Attrs& attrs;         // all attributes, including defaults
  const std::string& device;  // full name
  const std::vector<EdgeType>& input_types;
  const std::vector<EdgeType>& output_types;

  // Copies an attribute into *value; into a DType, its base type (without "ref"). InvalidArgument
  // if the attribute is missing or of another kind; names node, attribute and the kind found.
  template <class T>
  Status Attr(string_view attr, T* value) const;
  Status Attr(string_view attr, DType* value) const;
  Status Attr(string_view attr, int* value) const;  // InvalidArgument if out of the range of int
  Status Attr(string_view attr, std::vector<DType>* value) const;
};

// The services of the running step. All kernels of a step on one device share one StepContext.
struct StepContext {
  int64_t step_id = 0;
  uint64_t incarnation = 0;                 // the task's incarnation
  ResourceStore* resources = nullptr;       // the device's, or that of an isolated session
  ResourceStore* step_resources = nullptr;  // destroyed when the step ends
  Rendezvous* rendezvous = nullptr;
  Cancellation* cancellation = nullptr;
  Scheduler* threads = nullptr;  // runs ParallelFor and asynchronous work
  Env* env = nullptr;
  int64_t deadline_ns = 0;  // on the scale of Env::NowNanos(); 0: none
  // The feeds and fetches of the step, indexed by the attribute "index" of _Feed and _Fetch.
  const Tensor* feeds = nullptr;
  int num_feeds = 0;
  Tensor* fetches = nullptr;
  int num_fetches = 0;
};

class KernelContext {
 public:
  // Filled in by the executor. The arrays are borrowed until Compute returns or Done is called.
  struct Params {
    StepContext* step = nullptr;
    const std::string* node_name = nullptr;
    const std::string* device_name = nullptr;
    Allocator* allocator = nullptr;       // the device's allocator
    Allocator* host_allocator = nullptr;  // == allocator on CPU devices
    void* stream = nullptr;               // cudaStream_t on CUDA devices, else null
    void* device_handles = nullptr;       // library handles of the device (cuBLAS, ...), or null
    Tensor* inputs = nullptr;
    Tensor* outputs = nullptr;
    const EdgeType* output_types = nullptr;
    const bool* output_on_host = nullptr;  // per output; null: all outputs are in device memory
    int num_inputs = 0;
    int num_outputs = 0;
    uint64_t frame = 0;
    uint64_t iteration = 0;
  };
  explicit KernelContext(const Params& params) : p_(params) {}

  int num_inputs() const { return p_.num_inputs; }
  int num_outputs() const { return p_.num_outputs; }
  // Identify the loop and the iteration to which this execution belongs. frame() is the same number
  // in all tasks, and differs between the runs of an inner loop. Both are 0 outside of loops.
  uint64_t frame() const { return p_.frame; }
  uint64_t iteration() const { return p_.iteration; }
  const Tensor& input(int i) const { return p_.inputs[i]; }
  // Moves input i out. The caller may write its buffer if the returned tensor is unique().
  Tensor TakeInput(int i) { return std::move(p_.inputs[i]); }
  EdgeType output_type(int i) const { return p_.output_types[i]; }

  // Creates a tensor for output i, with the type that the output has in the graph.
  // ResourceExhausted if there is not enough memory. `*output` is valid until the kernel ends.
  Status Allocate(int i, const Shape& shape, Tensor** output);
  // Does the same as Allocate, but reuses the buffer of input `from` if nothing else refers to the
  // buffer, its size and type match, and it is in the right memory (host or device). Input `from`
  // stays readable and aliases the output: for kernels that read each element before they write it.
  Status ForwardOrAllocate(int from, int i, const Shape& shape, Tensor** output);
  void SetOutput(int i, Tensor value) { p_.outputs[i] = std::move(value); }
  // Returns scratch memory on the device; ResourceExhausted if there is not enough.
  StatusOr<Tensor> Temporary(DType dtype, const Shape& shape);

  const std::string& node_name() const { return *p_.node_name; }
  const std::string& device_name() const { return *p_.device_name; }
  // Returns the origin of the changes that this execution makes to resources.
  UpdateOrigin origin() const {
    return {p_.step->step_id, p_.step->incarnation, *p_.device_name, *p_.node_name};
  }
  StepContext& step() const { return *p_.step; }
  ResourceStore& resources() const { return *p_.step->resources; }
  Scheduler& threads() const { return *p_.step->threads; }
  void* stream() const { return p_.stream; }
  void* device_handles() const { return p_.device_handles; }
  Allocator& allocator() const { return *p_.allocator; }

 private:
  Allocator& OutputAllocator(int i) const {
    const bool on_host = p_.output_on_host != nullptr && p_.output_on_host[i];
    return on_host ? *p_.host_allocator : *p_.allocator;
  }

  Params p_;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Status Init(const KernelInit& node) { return OkStatus(); }
  virtual Status Compute(KernelContext& ctx) = 0;
  // Returns a rough estimate of the time of one execution in nanoseconds. The executor runs cheap
  // kernels inline and passes expensive ones to the thread pool. 0: the kernel has no estimate, and
  // the executor measures the time.
  virtual int64_t CostNanos() const { return 0; }
  virtual class AsyncKernel* AsAsync() { return nullptr; }
};

// A kernel that waits for an event outside of the kernel (Recv, queues, I/O). It must not block its
// thread.
class AsyncKernel : public Kernel {
 public:
  // The kernel must call `done` once, on any thread; `ctx` lives until then. If it waits, it must
  // register with ctx.step().cancellation; when cancelled, it ends with the cancellation's status.
  virtual void ComputeAsync(KernelContext& ctx, Done done) = 0;
  // Returns whether the kernel may wait for another node, and not only for files or threads of its
  // own. If it returns true, the op must have the trait may_wait or be internal.
  virtual bool WaitsForNodes() const { return true; }
  Status Compute(KernelContext& ctx) final { return Internal("async kernel run synchronously"); }
  AsyncKernel* AsAsync() final { return this; }
};

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <class T>
Status KernelInit::Attr(string_view attr, T* value) const {
  const auto it = attrs.find(attr);
  if (it == attrs.end()) return InvalidArgument("node '", name, "': no attribute '", attr, "'");
  const T* found = it->second.template get<T>();
  if (found == nullptr) {
    // An empty list without a kind converts to any list type, because in the wire format an empty
    // list has no kind.
    if constexpr (kIsVector<T>) {
      if (it->second.template get<EmptyList>() != nullptr) {
        value->clear();
        return OkStatus();
      }
    }
    return InvalidArgument("node '", name, "': attribute '", attr, "' is of kind ",
                           it->second.kind());
  }
  *value = *found;
  return OkStatus();
}

}  // namespace penstock
