// SPDX-License-Identifier: Apache-2.0
//
// Marks a shared library as an op library, which servers and programs can load (load_library.h;
// docs/custom-ops.md). At least one source file of the library must include this header:
//
//   #include "core/op/op_library.h"
//   OP(Triple) { return {...}; }
//   KERNEL(Triple, TripleKernel, float, double);
//
// The header adds a note to the library that describes the library's build. A process reads the
// note before it runs any code of the library, and refuses a library that was built for another
// version of Penstock. Programs do not include this header, because linked-in ops need no note.
#pragma once

#include "core/op/gradient.h"
#include "core/op/kernel.h"
#include "core/op/op_library_note.h"
#include "core/op/registry.h"
#include "core/op/shape_scope.h"

namespace penstock {

__attribute__((section(".note.penstock"), used,
               aligned(4))) static constexpr OpLibraryNote kOpLibraryNote = ThisNote();

}  // namespace penstock
