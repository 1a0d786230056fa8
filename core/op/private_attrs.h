// SPDX-License-Identifier: Apache-2.0
//
// Private attributes: what nodes carry besides the attributes that their ops declare. Programs and
// the compiler write them; ops and passes that know them read them, all others ignore them.
#pragma once

namespace penstock {

// A list of strings; those that are "loc:@NODE" have the placer put the node beside NODE. Written
// by colocation scopes (core/graph/builder.h) and by passes, for nodes that they make; read by
// core/compiler/placement.
inline constexpr char kColocationAttr[] = "_class";
inline constexpr char kColocatedWith[] = "loc:@";

// Present on a NoOp: what follows it is done as a whole (core/runtime/executor.h). Written by
// client/mutex.h, read by the executor.
inline constexpr char kCommitAttr[] = "_commit";

// Of an Enter: LoopOptions::swap_memory. Written by the loop's context (core/graph/flow_context.h),
// read by the gradients of loops.
inline constexpr char kSwapMemoryAttr[] = "_swap_memory";

// Of a StackPop: the shape of what it pops. Written by the gradients of loops, read by the shape
// function and the kernel (kernels/tensor_array).
inline constexpr char kElementShapeAttr[] = "_element_shape";

// The shapes of a node's outputs, as TensorFlow's GraphDefs carry them. Written by client/input.h,
// read by the shape functions of dequeuing ops (kernels/data).
inline constexpr char kOutputShapesAttr[] = "_output_shapes";

// Of a queue: its elements come in the same order in every run. Written by client/input.h, read by
// the queue's kernel and by client/queue_runner.h.
inline constexpr char kRepeatableAttr[] = "_repeatable";

// Present on a variable that every task has for itself: it does not go to a parameter server.
// Written by client/variable.h, read by client/device_setter.h.
inline constexpr char kLocalAttr[] = "_local";

// Present on a node that gives no value twice, in all its outputs together. Written by
// client/embedding, read by client/optimizer.h, which then need not look for repeated indices.
inline constexpr char kDistinctAttr[] = "_distinct";

// The type, "bfloat16" or "float", that the float outputs of a node have on their way to other
// tasks, whatever CompileOptions::bfloat16_transfers says. Written by programs, read by
// core/compiler/passes/compress_transfers.cc.
inline constexpr char kSendAsAttr[] = "_send_as";

// The container of a resource that belongs to one node of one session. A queue or a reader without
// shared_name is not shared: two sessions of the same program must not meet in it. On a server
// whose resources outlive sessions, the worker gives such a node a container of its session, by
// this attribute, and clears that container with the session. Written by distributed/worker, read
// by kernels of resources (kernels/data, kernels/lookup). Kernels of variables ignore it: a
// variable's node name is a name like any other.
inline constexpr char kPrivateContainerAttr[] = "_private_container";

}  // namespace penstock
