// SPDX-License-Identifier: Apache-2.0
//
// The passes: one file each. core/compiler/compile.cc lists them in the order in which they run.
// Errors name the node. A pass leaves the graph valid.
#pragma once

#include "core/base/status.h"
#include "core/compiler/pass/pass.h"

namespace penstock {

// Copies the nodes of the program from which the fetches and targets are computed (TensorFlow's
// white paper, 4.2). Replaces fed tensors by _Feed nodes, and adds a _Fetch node for each fetch;
// both are placed on the client's device. InvalidArgument if a feed, fetch or target is inside a
// loop.
Status Prune(PassContext& context);

// Replaces each node with the attribute kFunctionResultsAttr, which stands for the gradients of a
// function, by nodes that compute them. The function's body is in the graph. InvalidArgument if the
// attribute does not fit the node; the error of AddGradients names a node of the body that has no
// gradient.
Status ExpandFunctionGradients(PassContext& context);

// Replaces nodes that depend only on constants, and Shape nodes with a known result, by constants.
// Does not replace nodes that are stateful, that fail, or that have very large values, nor nodes
// that may run never or several times: constants with a control input, and control-flow nodes.
// Kernels run on this thread and on CompileOptions::threads.
Status FoldConstants(PassContext& context);

// Removes nodes whose output has the bits of an input: x * 1, x / 1, x - 0, x + -0.0 (for integers
// x + 0), Neg(Neg(x)), two Transposes that cancel each other, Cast to the same type, AddN of one
// input, and Reshape, Tile, Slice, StridedSlice, Pad or BroadcastTo to the shape of the input. An
// Identity of an Identity, and a Reshape of a Reshape, take the input of the inner node. Keeps
// nodes that have control inputs, read a reference, take a value from a control-flow node, have
// arguments (shapes, paddings, ...) that are not constant, or could fail because shapes are not
// known. Keeps copies of views of variables, because ReadVariablesLate may read a view again, and
// nodes that the `_class` of another node names. Keeps x + 0.0, because -0.0 + 0.0 is 0.0, and
// pow(x, 1), which may round.
Status SimplifyArithmetic(PassContext& context);

// Merges nodes that compute the same values from the same inputs and have the same device
// constraints (Click's global value numbering, in one walk in topological order). Never merges
// stateful nodes. Removes the duplicate node, unless it is a target.
Status EliminateCommonSubexpressions(PassContext& context);

// Removes nodes that no other node needs any more after folding and merging: stateless nodes
// without consumers that are not targets. Keeps nodes that read a reference, because these must
// fail if the variable has no value yet: clients fetch the rank of a variable to learn whether the
// variable is initialised.
Status RemoveDeadNodes(PassContext& context);

// Replaces a Gather (or a GatherV2 of dimension 0) by a ResourceGather if its table is a variable
// that is read only for this Gather, perhaps through Identities. Then the variable's task sends
// only the rows. Keeps a Gather if the replacement could see another value: if another node uses
// the read or waits for it, or if an update of the variable runs before the Gather but need not run
// before the read. Also keeps a Gather that `_class` attributes colocate with other nodes than the
// variable.
Status GatherFromVariables(PassContext& context);

// Chooses a device for every node (core/compiler/placement/placer.h), by measured and estimated
// costs. Fills in CompileReport::placement.
Status PlaceNodes(PassContext& context);

// Connects some consumers of a variable's value to the variable itself, so that they read the value
// when they run. It does so for consumers that run after an update of the variable, but take the
// value from an op that only passes it on (Identity, Switch, Enter, ...) and that may run before
// the update. All other consumers keep their snapshot. Changes only consumers on the variable's
// device.
Status ReadVariablesLate(PassContext& context);

// Adds nodes that round floats to bfloat16 (to nearest even) before they are sent to another task,
// and convert them back to floats there. Does so for outputs of nodes whose attribute kSendAsAttr
// is "bfloat16". With CompileOptions::bfloat16_transfers it does so for all outputs, unless the
// attribute is "float" or the output is known to have fewer than 256 elements. A transfer stays
// exact if one of its consumers stores the value, or moves it to a node that does (assign, save,
// enqueue, fetch; but not the update of a variable by a gradient). A transfer also stays exact if
// the value comes from a feed or from the Enter of a loop. InvalidArgument if the attribute has any
// other value.
Status CompressTransfers(PassContext& context);

// Replaces each tree of elementwise nodes by one _Fused node, which computes the same bits block by
// block, so that the tensors between the nodes are never written to memory. The nodes of a tree
// have the same inferred shape and the same CPU, and only they use each other's outputs, except
// that of the root. Keeps nodes that are targets or read a reference, nodes whose kernels are not
// BlockKernels (core/op/block_kernel.h), and, except as roots, nodes for which others wait by
// control edges. The _Fused node has the control inputs of all its nodes. A node joins a tree only
// if that keeps no more tensors of the output's size alive: s = a + b and t = s + c stay two nodes.
// Does nothing with CompileOptions::memory_limit, because FitMemory does not recompute or split a
// _Fused node, or with any_task, because measured times of _Fused nodes do not tell how long the
// program's nodes take.
Status FuseElementwise(PassContext& context);

// Schedules transfers between tasks by a predicted step. (1) Fills in PassContext::urgency, so that
// tasks send variables in the order in which the critical path needs them. (2) Delays transfers of
// 64 KiB or more to a task that does not need them yet: the value passes through an Identity
// ("_late_...") on the sending device, with a control edge from a node of the receiving device that
// is predicted to end just in time. It delays transfers only under three conditions: the
// predicted peak of the tensors' bytes falls on some device, by at least a tenth and at least a
// mebibyte; it rises on no device; and the predicted time of the step grows by at most a hundredth.
// No transfer waits for a node that may be dead, or that may wait for an event outside of the step.
// Leaves graphs with loops and partial runs unchanged.
Status ScheduleTransfers(PassContext& context);

// Predicts the memory of the step, if CompileOptions::predict or memory_limit asks for it, and
// fills in CompileReport::memory. If a device's peak is above nine tenths of the limit, or could
// exceed the limit in another order of nodes, changes the step until it fits: first, control edges
// change the order in which nodes run; then cheap nodes run a second time, so that their outputs
// can be freed in between; then tensors are written to files (CPUs only). The results of the step
// stay bitwise the same.
// RESOURCE_EXHAUSTED names the tensors that do not fit, with their bytes; FAILED_PRECONDITION names
// a loop, whose memory is not known before the step.
Status FitMemory(PassContext& context);

// Cuts the graph into PassContext::partitions (core/compiler/partition/partitioner.h), with a small
// control loop on each device of a loop that is spread over several
// (core/compiler/partition/control_loops.h).
Status MakePartitions(PassContext& context);

// Removes control edges that are parallel to a data edge, because the data edge already orders the
// two nodes. Programs and earlier passes add such edges, and each one costs the executor time.
Status DropControls(PassContext& context);

}  // namespace penstock
