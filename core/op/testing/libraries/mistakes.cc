// SPDX-License-Identifier: Apache-2.0
//
// Op libraries with one mistake each, chosen by a define. LoadLibrary must refuse them.
#if defined(WITHOUT_NOTE)
#include "core/op/registry.h"
#else
#include "core/op/op_library.h"
#endif

namespace penstock {

#if defined(WITHOUT_NOTE)
OP(WithoutNote) { return {}; }
#elif defined(OP_OF_THE_PROCESS)
OP(OpOfTheTest) { return {}; }
#elif defined(CONTRADICTION)
OP(Contradiction) { return {.inputs = {{"x", "U"}}}; }
#elif defined(KERNEL_WITHOUT_OP)
std::unique_ptr<Kernel> MakeNone() { return nullptr; }
KERNEL_DEF({.op = "SuchOpDoesNotExist", .make = MakeNone});
#elif defined(KERNEL_THAT_REPLACES)
std::unique_ptr<Kernel> MakeNone() { return nullptr; }
KERNEL_DEF({.op = "TypedOpOfTheTest",
            .types = {{"T", DType::kFloat}, {"U", DType::kInt32}},
            .make = MakeNone});
#elif defined(KERNEL_FOR_ANY_TYPE)
std::unique_ptr<Kernel> MakeNone() { return nullptr; }
KERNEL_DEF({.op = "TypedOpOfTheTest", .make = MakeNone});
#elif defined(UNLINKED)
Status DefinedNowhere(ShapeScope& scope);
OP(Unlinked) { return {.shape = DefinedNowhere}; }
#elif defined(NOTHING_DECLARED)
#else
#error "a define says which mistake to make"
#endif

}  // namespace penstock
