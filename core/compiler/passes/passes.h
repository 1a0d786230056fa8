// SPDX-License-Identifier: Apache-2.0
//
// The passes: one file each. core/compiler/compile.cc lists them in the order in which they run.
// Errors name the node. A pass leaves the graph valid.
#pragma once

#include "core/base/status.h"
#include "core/compiler/pass/pass.h"

namespace penstock {

// Makes the graph: what feeds, fetches and targets need of the program (white paper 4.2), with
// _Feed nodes in the place of fed tensors and a _Fetch node for each fetch, both pinned to the
// client's device. InvalidArgument if a feed, fetch or target is inside a loop.
Status Prune(PassContext& context);

// Computes at compile time what depends on constants alone, and the shapes that inference knows.
// Leaves nodes that are stateful, too large, or fail when tried; and those that may not run at all,
// or many times: constants that wait for another node, and the nodes of control flow. Kernels run
// on this thread and CompileOptions::threads.
Status FoldConstants(PassContext& context);

// Merges nodes that compute the same from the same inputs under the same constraints (Click's
// global value numbering over one topological walk). Stateful nodes are never merged. Removes the
// duplicate node, unless it is a target.
Status EliminateCommonSubexpressions(PassContext& context);

// Drops what nothing needs any more after folding and merging: stateless nodes without consumers
// that are not targets. Keeps what reads a reference, which fails if the variable has no value yet:
// clients ask for the rank of a variable to learn whether it is initialised.
Status RemoveDeadNodes(PassContext& context);

// Makes a ResourceGather of each Gather (or GatherV2 of dimension 0) whose table is a variable that
// was read for it alone, perhaps by way of Identities. Then only the rows leave the variable's
// task. A Gather stays as it is where it could otherwise see another value: if something else uses
// the read or waits for it, or if an update of the variable comes before the Gather and need not
// come before the read. A Gather stays, too, if `_class` attributes place it with other nodes than
// the variable's.
Status GatherFromVariables(PassContext& context);

// Gives every node a device (core/compiler/placement/placer.h), by measured and estimated costs.
// Fills in CompileReport::placement.
Status PlaceNodes(PassContext& context);

// Connects a consumer to a variable itself if the graph says that it comes after an update of the
// variable and takes the value from an op that only passes it on (Identity, Switch, Enter, ...) and
// does not come after the update. All others keep their snapshot. Only on the variable's device.
Status ReadVariablesLate(PassContext& context);

// Has floats rounded to bfloat16 (to nearest even) before they are sent to another task, and made
// floats again there: those of nodes whose attribute kSendAsAttr says "bfloat16", and with
// CompileOptions::bfloat16_transfers all but those that it says "float" of, or that are known to be
// smaller than 256 elements. A transfer stays exact if one of its consumers keeps the value, as it
// is or moved (assigned, saved, enqueued, fetched; a gradient that updates a variable does not
// count), and if it comes from a feed or from the Enter of a loop. InvalidArgument if the attribute
// says anything else.
Status CompressTransfers(PassContext& context);

// Schedules transfers between tasks by a predicted step. (1) Fills in PassContext::urgency, so that
// variables leave their task in the order in which the critical path needs them. (2) Delays
// transfers of 64 KiB or more to a task that does not need them yet: the value passes through an
// Identity ("_late_...") on its own device, with a control edge from a node of the receiving device
// that is predicted to end just in time. It does so only if the predicted peak of the tensors'
// bytes falls by a tenth and a mebibyte or more on some device, rises on none, and the step is
// predicted to take at most a hundredth longer. No node that may be dead, or may wait for something
// outside of the step, delays another one; graphs with loops and partial runs are left as they are.
Status ScheduleTransfers(PassContext& context);

// Predicts the memory of the step, if CompileOptions::predict or memory_limit asks for it, and
// fills in CompileReport::memory. If a device's peak is above the limit, changes the step until it
// is not: first the order in which nodes run, by control edges; then cheap nodes run a second time
// instead of keeping what they made; then tensors wait in a file (CPUs only). Results stay the
// same, bit for bit. RESOURCE_EXHAUSTED names the tensors that do not fit, with their bytes;
// FAILED_PRECONDITION names a loop, whose memory is not known before the step.
Status FitMemory(PassContext& context);

// Cuts the graph into PassContext::partitions (core/compiler/partition/partitioner.h), with a small
// control loop on each device of a loop that is spread over several
// (core/compiler/partition/control_loops.h).
Status MakePartitions(PassContext& context);

}  // namespace penstock
