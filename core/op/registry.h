// SPDX-License-Identifier: Apache-2.0
//
// Registry: the ops and kernels of a program. OP and KERNEL declare them in source files.
//
// Before main begins, OP and KERNEL append to two lists of declarations, which do not change
// afterwards. Registry::Global() is built from these lists; a test may build a Registry from its
// own lists. A Registry is immutable, so it is thread-safe.
//
// A node's op, its device type and the values of its type attributes determine its kernel:
//   KERNEL(Expm1, UnaryElementwise<Expm1Fn>::Kernel, float, double);  // by attribute T
//   KERNEL_BY("dtype", RandomUniform, UniformKernel, float, double);
//   KERNEL_ANY_TYPE(NoOp, NoOpKernel);
//   KERNEL_DEF({.op = "Reshape", .device = "GPU", .host_args = {"shape"}, .make =
//   Make<ReshapeKernel>});
// If nvcc compiles a file a second time for the GPU (PENSTOCK_CUDA_DEVICE is then defined), the
// KERNEL lines in the file register GPU kernels.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "core/op/op_def.h"

namespace penstock {

// Static, because a file may be compiled twice, once for each device type. If this constant were
// inline, the linker would keep only one of its two values.
#if defined(PENSTOCK_CUDA_DEVICE)
static constexpr char kThisDevice[] = "GPU";
#else
static constexpr char kThisDevice[] = "CPU";
#endif

struct KernelDef {
  std::string op;
  std::string device = kThisDevice;
  std::map<std::string, DType> types = {};  // attribute -> required value; empty: any
  std::vector<std::string> host_args = {};  // inputs and outputs in host memory
  std::unique_ptr<Kernel> (*make)() = nullptr;
};

class Registry {
 public:
  // Returns a registry with the linked-in ops and kernels, and those of the libraries loaded so far
  // (load_library.h). The first call CHECKs that the linked-in declarations contain no duplicates,
  // no unknown type attributes and no kernels of unknown ops.
  static const Registry& Global();
  Registry(std::vector<OpDef> ops, std::vector<KernelDef> kernels);

  const OpDef* FindOp(string_view op) const;  // null if there is no such op
  // Returns the op; NotFound if there is no such op, with suggestions of similar names.
  StatusOr<const OpDef*> GetOp(string_view op) const;
  // Returns the kernel for these attributes. If there is none, returns a NotFound that lists the
  // devices and types for which the op has kernels.
  StatusOr<const KernelDef*> FindKernel(string_view op, string_view device_type,
                                        const Attrs& attrs) const;
  // Creates and initialises the kernel of one node. Errors are those of FindKernel and
  // Kernel::Init.
  StatusOr<std::unique_ptr<Kernel>> MakeKernel(string_view device_type,
                                               const KernelInit& node) const;

  std::vector<const OpDef*> ops() const;  // sorted by name
  std::vector<const KernelDef*> kernels(string_view op) const;

 private:
  std::map<std::string, OpDef, std::less<>> ops_;
  std::map<std::string, std::vector<KernelDef>, std::less<>> kernels_;
};

// OP and KERNEL define static objects of these two types. `make` is not called before main, but
// when a Registry is built.
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
// Returns one kernel for each type in Ts: the kernel K<T> for nodes whose attribute `attr` is T.
// Has internal linkage: if two files have alias templates of one name in their unnamed namespaces,
// GCC gives their instantiations the same symbol, and the linker would keep only one of them.
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
// Declares an op: OP(Name) { return {...}; }. The braces are the body of a function that returns
// the OpDef.
#if defined(PENSTOCK_CUDA_DEVICE)  // the compilation for the CPU has declared the op
#define OP(Name) [[maybe_unused]] static ::penstock::OpDef penstock_op_def_##Name()
#else
#define OP(Name)                                                                            \
  static ::penstock::OpDef penstock_op_def_##Name();                                        \
  static const ::penstock::OpDeclaration penstock_op_##Name(#Name, penstock_op_def_##Name); \
  static ::penstock::OpDef penstock_op_def_##Name()
#endif
#define KERNEL(Name, K, ...) KERNEL_BY("T", Name, K, __VA_ARGS__)
// If K has commas in its template arguments, first give it a name with `using`.
#define KERNEL_BY(attr, Name, K, ...)                                            \
  static const ::penstock::KernelDeclaration PENSTOCK_UNIQUE_(penstock_kernel_)( \
      []() -> std::vector<::penstock::KernelDef> {                               \
        return ::penstock::KernelsByType<K, __VA_ARGS__>(#Name, attr);           \
      })
// Does the same as KERNEL, for ops with arguments in host memory:
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
