// SPDX-License-Identifier: Apache-2.0
//
// Registry: the ops and kernels that a program knows; OP and KERNEL: how a source file declares
// them.
//
// Declare statically, assemble explicitly: OP and KERNEL append to a list that is never changed
// once main runs; a Registry is a value made of it (or of a list of a test's own) and passed in. A
// Registry is immutable: thread-safe.
//
// Kernels are told apart by op, device type and the values of type attributes:
//   KERNEL(Expm1, UnaryElementwise<Expm1Fn>::Kernel, float, double);  // by attribute T
//   KERNEL_BY("dtype", RandomUniform, RandomUniformKernel, float, double);
//   KERNEL_ANY_TYPE(NoOp, NoOpKernel);
//   KERNEL_DEF({.op = "Reshape", .device = "GPU", .host_args = {"shape"}, .make =
//   Make<ReshapeKernel>});
// A file compiled for CUDA (the second time, by nvcc) registers the same lines for the GPU.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "core/op/op_def.h"

namespace penstock {

// One for each compilation of a file: were it shared (inline), the linker would keep one of two.
#if defined(PENSTOCK_CUDA_DEVICE)
static constexpr char kThisDevice[] = "GPU";
#else
static constexpr char kThisDevice[] = "CPU";
#endif

struct KernelDef {
  std::string op;
  std::string device = kThisDevice;
  std::map<std::string, DType> types = {};  // attribute -> required value; empty: any
  std::vector<std::string> host_args = {};  // inputs and outputs that live in host memory
  std::unique_ptr<Kernel> (*make)() = nullptr;
};

class Registry {
 public:
  // Everything that was linked in, built on first use. CHECKs our own declarations: duplicates,
  // references to unknown type attributes, kernels of ops that do not exist.
  static const Registry& Global();
  Registry(std::vector<OpDef> ops, std::vector<KernelDef> kernels);

  const OpDef* FindOp(string_view op) const;  // null where unknown
  // As FindOp; NotFound suggests names that are close.
  StatusOr<const OpDef*> GetOp(string_view op) const;
  // The kernel for these attributes. NotFound says for which devices and types there are kernels.
  StatusOr<const KernelDef*> FindKernel(string_view op, string_view device_type,
                                        const Attrs& attrs) const;
  // Makes the kernel of one node, ready to run.
  StatusOr<std::unique_ptr<Kernel>> MakeKernel(string_view device_type,
                                               const KernelInit& node) const;

  std::vector<const OpDef*> ops() const;  // sorted by name
  std::vector<const KernelDef*> kernels(string_view op) const;

 private:
  std::map<std::string, OpDef, std::less<>> ops_;
  std::map<std::string, std::vector<KernelDef>, std::less<>> kernels_;
};

// What static declarations call. `make` runs when a Registry is built, not before main.
struct OpDeclaration {
  OpDeclaration(const char* name, OpDef (*make)());
};
struct KernelDeclaration {
  explicit KernelDeclaration(std::vector<KernelDef> (*make)());
};
std::vector<OpDef> DeclaredOps();
std::vector<KernelDef> DeclaredKernels();

template <class K>
std::unique_ptr<Kernel> Make() {
  return std::make_unique<K>();
}
// Internal to each file: GCC gives instantiations for alias templates of one name in the unnamed
// namespaces of two files the same symbol, and the linker would keep one of them.
template <template <class> class K, class... Ts>
static std::vector<KernelDef> KernelsByType(const char* op, const char* attr) {
  return {KernelDef{.op = op, .types = {{attr, kDTypeOf<Ts>}}, .make = Make<K<Ts>>}...};
}

inline std::vector<KernelDef> OnHost(std::vector<KernelDef> kernels,
                                     const std::vector<std::string>& args) {
  for (KernelDef& kernel : kernels) kernel.host_args = args;
  return kernels;
}

}  // namespace penstock

#define PENSTOCK_UNIQUE_(name) PENSTOCK_CONCAT_(name, __COUNTER__)
// OP(Name) { return {...}; }: the body of a function that makes the OpDef.
#if defined(PENSTOCK_CUDA_DEVICE)  // the op itself is declared by the host's compilation
#define OP(Name) [[maybe_unused]] static ::penstock::OpDef penstock_op_def_##Name()
#else
#define OP(Name)                                                                            \
  static ::penstock::OpDef penstock_op_def_##Name();                                        \
  static const ::penstock::OpDeclaration penstock_op_##Name(#Name, penstock_op_def_##Name); \
  static ::penstock::OpDef penstock_op_def_##Name()
#endif
#define KERNEL(Name, K, ...) KERNEL_BY("T", Name, K, __VA_ARGS__)
// Where K has commas in its own template arguments, give it a name with `using` first.
#define KERNEL_BY(attr, Name, K, ...)                                            \
  static const ::penstock::KernelDeclaration PENSTOCK_UNIQUE_(penstock_kernel_)( \
      []() -> std::vector<::penstock::KernelDef> {                               \
        return ::penstock::KernelsByType<K, __VA_ARGS__>(#Name, attr);           \
      })
// As KERNEL, for ops with arguments in host memory:
// KERNEL_HOST_ARGS(("axis"), Sum, SumKernel, float).
#define KERNEL_HOST_ARGS(args, Name, K, ...)                                             \
  static const ::penstock::KernelDeclaration PENSTOCK_UNIQUE_(penstock_kernel_)(         \
      []() -> std::vector<::penstock::KernelDef> {                                       \
        return ::penstock::OnHost(::penstock::KernelsByType<K, __VA_ARGS__>(#Name, "T"), \
                                  std::vector<std::string>{PENSTOCK_UNPACK_ args});      \
      })
#define PENSTOCK_UNPACK_(...) __VA_ARGS__
#define KERNEL_ANY_TYPE(Name, K)                                                  \
  static const ::penstock::KernelDeclaration PENSTOCK_UNIQUE_(penstock_kernel_)(  \
      []() -> std::vector<::penstock::KernelDef> {                                \
        return {::penstock::KernelDef{.op = #Name, .make = ::penstock::Make<K>}}; \
      })
#define KERNEL_DEF(...)                                                          \
  static const ::penstock::KernelDeclaration PENSTOCK_UNIQUE_(penstock_kernel_)( \
      []() -> std::vector<::penstock::KernelDef> {                               \
        using namespace ::penstock; /* NOLINT */                                 \
        return {KernelDef __VA_ARGS__};                                          \
      })
