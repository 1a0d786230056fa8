// SPDX-License-Identifier: Apache-2.0
//
// The passes: one file each. core/compiler/compile.cc lists them in the order in which they run.
// Errors name the node. A pass leaves the graph valid.
#pragma once

#include "core/base/status.h"
#include "core/compiler/pass/pass.h"

namespace penstock {

// Copies the part of the program that the fetches and targets need (white paper 4.2). Replaces fed
// tensors by _Feed nodes, and adds a _Fetch node for each fetch; both are placed on the client's
// device. InvalidArgument if a feed, fetch or target is inside a loop.
Status Prune(PassContext& context);

// Replaces nodes with the attribute kFunctionResultsAttr by the gradients of a function, whose body
// is in the graph. InvalidArgument if the attribute does not fit the node; the error of
// AddGradients names a node of the body that has no gradient.
Status ExpandFunctionGradients(PassContext& context);

// Replaces nodes that depend on constants alone, and Shape nodes whose result is known, by
// constants. Leaves nodes that are stateful or fail, and values that are too large. Also leaves
// nodes that may not run or may run many times: constants with a control input, and the nodes of
// control flow. Kernels run on this thread and CompileOptions::threads.
Status FoldConstants(PassContext& context);

// Merges nodes that compute the same values from the same inputs under the same constraints
// (Click's global value numbering over one topological walk). Stateful nodes are never merged.
// Removes the duplicate node, unless it is a target.
Status EliminateCommonSubexpressions(PassContext& context);

// Removes nodes that nothing needs any more after folding and merging: stateless nodes that have no
// consumers and are not targets. Keeps nodes that read a reference, because they fail if the
// variable has no value yet: clients ask for the rank of a variable to learn whether it is
// initialised.
Status RemoveDeadNodes(PassContext& context);

// Replaces a Gather (or a GatherV2 of dimension 0) by a ResourceGather if its table is a variable
// that is read only for this Gather, perhaps through Identities. Then only the rows leave the
// variable's task. A Gather is kept if the replacement could see another value: if another node
// uses the read or waits for it, or if an update of the variable comes before the Gather but need
// not come before the read. A Gather is also kept if `_class` attributes place it with other nodes
// than the variable's.
Status GatherFromVariables(PassContext& context);

// Gives every node a device (core/compiler/placement/placer.h), by measured and estimated costs.
// Fills in CompileReport::placement.
Status PlaceNodes(PassContext& context);

// Connects some consumers of a variable's value to the variable itself, so that they read it late.
// These consumers run after an update of the variable, but take the value from an op that only
// passes it on (Identity, Switch, Enter, ...) and need not run after the update. All other
// consumers keep their snapshot. Changes only consumers on the variable's device.
Status ReadVariablesLate(PassContext& context);

// Rounds floats to bfloat16 (to nearest even) before they are sent to another task, and converts
// them to floats there. Does so for outputs of nodes whose attribute kSendAsAttr is "bfloat16".
// With CompileOptions::bfloat16_transfers it does so for all outputs, unless the attribute is
// "float" or the output is known to have less than 256 elements. A transfer stays exact if one of
// its consumers stores the value or moves it to where it is stored (assigned, saved, enqueued,
// fetched; a gradient that updates a variable does not count). It also stays exact if it comes from
// a feed or from the Enter of a loop. InvalidArgument if the attribute has any other value.
Status CompressTransfers(PassContext& context);

// Schedules transfers between tasks by a predicted step. (1) Fills in PassContext::urgency, so that
// variables leave their task in the order in which the critical path needs them. (2) Delays
// transfers of 64 KiB or more to a task that does not need them yet: the value passes through an
// Identity ("_late_...") on its own device, with a control edge from a node of the receiving device
// that is predicted to end just in time. It delays transfers only under three conditions: the
// predicted peak of the tensors' bytes falls on some device, by at least a tenth and at least a
// mebibyte; it rises on no device; and the predicted time of the step grows by at most a hundredth.
// A node that may be dead, or may wait for an event outside of the step, never delays another node.
// Graphs with loops and partial runs are left unchanged.
Status ScheduleTransfers(PassContext& context);

// Predicts the memory of the step, if CompileOptions::predict or memory_limit asks for it, and
// fills in CompileReport::memory. If a device's peak is above nine tenths of the limit, or could
// exceed the limit in another order of nodes, changes the step until it fits: first control edges
// change the order in which nodes run; then cheap nodes run a second time, so that their outputs
// need not be kept; then tensors are kept in files (CPUs only). Results stay the same, bit for bit.
// RESOURCE_EXHAUSTED names the tensors that do not fit, with their bytes; FAILED_PRECONDITION names
// a loop, whose memory is not known before the step.
Status FitMemory(PassContext& context);

// Cuts the graph into PassContext::partitions (core/compiler/partition/partitioner.h), with a small
// control loop on each device of a loop that is spread over several
// (core/compiler/partition/control_loops.h).
Status MakePartitions(PassContext& context);

// Removes control edges that are parallel to a data edge, which orders the two nodes already.
// Programs and the passes before it add them; in a partition, the executor would have to count down
// each of them.
Status DropControls(PassContext& context);

}  // namespace penstock
