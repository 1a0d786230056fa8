// SPDX-License-Identifier: Apache-2.0
//
// Holds the lists of declarations to which OP and KERNEL append, and the registry made from them.
#include <atomic>
#include <memory>
#include <utility>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/op/registry.h"

namespace penstock {

// Defined in check_declarations.cc.
Status CheckDeclarations(const std::vector<OpDef>& ops, const std::vector<KernelDef>& kernels);
// Defined in registry.cc.
std::string Describe(const KernelDef& kernel);

namespace {

struct DeclarationLists {
  struct Op {
    const char* name;
    OpDef (*make)();
  };
  std::vector<Op> ops;
  std::vector<std::vector<KernelDef> (*)()> kernels;

  std::vector<OpDef> MakeOps() const {
    std::vector<OpDef> made;
    for (const Op& op : ops) {
      made.push_back(op.make());
      made.back().name = op.name;
    }
    return made;
  }
  std::vector<KernelDef> MakeKernels() const {
    std::vector<KernelDef> made;
    for (const auto make : kernels) {
      for (KernelDef& kernel : make()) made.push_back(std::move(kernel));
    }
    return made;
  }
};

// LinkedMutex and LinkedDeclarations return function-local statics, because the static initialisers
// of other files, which call them, run in any order.
Mutex& LinkedMutex() {
  static auto& mutex = *new Mutex;
  return mutex;
}
DeclarationLists& LinkedDeclarations() {
  static auto& lists = *new DeclarationLists;
  return lists;
}

thread_local DeclarationLists* collecting = nullptr;

template <class Add>
void AddDeclaration(const Add& add) {
  if (collecting != nullptr) return add(*collecting);
  MutexLock lock(LinkedMutex());
  add(LinkedDeclarations());
}

// Serialises the writers of `global`. Readers of `global` need no lock.
Mutex& GlobalMutex() {
  static auto& mutex = *new Mutex;
  return mutex;
}
std::atomic<const Registry*> global{nullptr};

// Returns whether a node could match both kernels.
bool Overlap(const KernelDef& a, const KernelDef& b) {
  if (a.device != b.device) return false;
  for (const auto& [attr, dtype] : a.types) {
    const auto it = b.types.find(attr);
    if (it != b.types.end() && it->second != dtype) return false;
  }
  return true;
}

// Rejects added kernels that a node could match along with a known one. FindKernel prefers the
// kernel that names more types, so an added kernel could replace a known one unnoticed.
Status CheckReplacesNone(const Registry& known, const std::vector<KernelDef>& added) {
  for (const KernelDef& kernel : added) {
    for (const KernelDef* there : known.kernels(kernel.op)) {
      if (!Overlap(kernel, *there)) continue;
      return AlreadyExists("a kernel of ", kernel.op, " for ", Describe(kernel),
                           " would replace the existing one for ", Describe(*there));
    }
  }
  return OkStatus();
}

}  // namespace

OpDeclaration::OpDeclaration(const char* name, OpDef (*make)()) {
  AddDeclaration([&](DeclarationLists& lists) { lists.ops.push_back({name, make}); });
}
KernelDeclaration::KernelDeclaration(std::vector<KernelDef> (*make)()) {
  AddDeclaration([&](DeclarationLists& lists) { lists.kernels.push_back(make); });
}

std::vector<OpDef> DeclaredOps() {
  MutexLock lock(LinkedMutex());
  return LinkedDeclarations().MakeOps();
}
std::vector<KernelDef> DeclaredKernels() {
  MutexLock lock(LinkedMutex());
  return LinkedDeclarations().MakeKernels();
}

const Registry& Registry::Global() {
  if (const Registry* made = global.load(std::memory_order_acquire)) return *made;
  MutexLock lock(GlobalMutex());
  if (global.load(std::memory_order_relaxed) == nullptr) {
    global.store(new Registry(DeclaredOps(), DeclaredKernels()), std::memory_order_release);
  }
  return *global.load(std::memory_order_relaxed);
}

// These three functions are declared in declarations.h.
void CollectDeclarations() {
  CHECK(collecting == nullptr, "declarations are being collected already");
  collecting = new DeclarationLists;
}

std::pair<std::vector<OpDef>, std::vector<KernelDef>> TakeDeclarations() {
  CHECK(collecting != nullptr, "no declarations are being collected");
  const std::unique_ptr<const DeclarationLists> lists(std::exchange(collecting, nullptr));
  return {lists->MakeOps(), lists->MakeKernels()};
}

Status ExtendGlobalRegistry(const std::pair<std::vector<OpDef>, std::vector<KernelDef>>& added) {
  const Registry& known = Registry::Global();
  RETURN_IF_ERROR(CheckReplacesNone(known, added.second));
  std::vector<OpDef> ops = added.first;
  std::vector<KernelDef> kernels = added.second;
  for (const OpDef* op : known.ops()) {
    ops.push_back(*op);
    for (const KernelDef* kernel : known.kernels(op->name)) kernels.push_back(*kernel);
  }
  RETURN_IF_ERROR(CheckDeclarations(ops, kernels));
  MutexLock lock(GlobalMutex());
  // Keeps all registries, because graphs and sessions may still use those of earlier calls.
  static auto& all = *new std::vector<std::unique_ptr<const Registry>>;
  all.push_back(std::make_unique<const Registry>(std::move(ops), std::move(kernels)));
  global.store(all.back().get(), std::memory_order_release);
  return OkStatus();
}

}  // namespace penstock
