// SPDX-License-Identifier: Apache-2.0
//
// Private attributes: attributes of nodes that the nodes' ops do not declare. Each comment names
// the code that writes the attribute and the code that acts on it; other code ignores it.
#pragma once

namespace penstock {

// A list of strings. For each string "loc:@NODE" the placer colocates the node with NODE. Written
// by colocation scopes (core/graph/builder.h) and by passes, for nodes that they add; read by
// core/compiler/placement.
inline constexpr char kColocationAttr[] = "_class";
inline constexpr char kColocatedWith[] = "loc:@";

// Present on a NoOp: either all nodes after it run, or none of them (core/runtime/executor.h).
// Written by client/mutex.h, read by the executor.
inline constexpr char kCommitAttr[] = "_commit";

// On an Enter: the value of LoopOptions::swap_memory. Written by the loop's context
// (core/graph/flow_context.h), read by the gradients of loops.
inline constexpr char kSwapMemoryAttr[] = "_swap_memory";

// On a StackPop: the shape of the popped value. Written by the gradients of loops, read by the
// shape function and the kernel (kernels/tensor_array).
inline constexpr char kElementShapeAttr[] = "_element_shape";

// The shapes of a node's outputs, as TensorFlow's GraphDefs carry them. Written by client/input.h,
// read by the shape functions of dequeuing ops (kernels/data).
inline constexpr char kOutputShapesAttr[] = "_output_shapes";

// On a queue: its elements must arrive in the same order in every run. Written by client/input.h,
// read by the queue's kernel and by client/queue_runner.h.
inline constexpr char kRepeatableAttr[] = "_repeatable";

// Present on a variable of which each task has its own copy, on no parameter server. Written by
// client/variable.h, read by client/device_setter.h and distributed/master/summarize_training.h.
inline constexpr char kLocalAttr[] = "_local";

// Present on a node whose outputs, taken together, contain no value twice. Written by
// client/embedding, read by client/optimizer.h, which then does not remove repeated indices.
inline constexpr char kDistinctAttr[] = "_distinct";

// The type, "bfloat16" or "float", in which the float outputs of a node are sent to other tasks;
// overrides CompileOptions::bfloat16_transfers. Written by programs, read by
// core/compiler/passes/compress_transfers.cc.
inline constexpr char kSendAsAttr[] = "_send_as";

// On a SymbolicGradient: the number of results of its function, whose body is in the graph. The
// node's inputs are those results, the function's arguments, and the gradients of the results.
// Written by core/functions, read by core/compiler/passes/function_gradients.cc.
inline constexpr char kFunctionResultsAttr[] = "_function_results";

// The container of a resource that belongs to one node of one session. A queue or a reader without
// shared_name is not shared: two sessions of one program must not use the same one. On a server
// whose resources outlive sessions, the worker sets this attribute, which names a container of the
// session, and clears that container when the session ends. Written by distributed/worker, read by
// the kernels of such resources and by distributed/insight. Kernels of variables ignore it, because
// variables are shared by name.
inline constexpr char kPrivateContainerAttr[] = "_private_container";
// The name of a private container is this prefix followed by the session's handle.
inline constexpr char kPrivateContainerPrefix[] = "session/";

}  // namespace penstock
