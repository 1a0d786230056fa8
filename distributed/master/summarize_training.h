// SPDX-License-Identifier: Apache-2.0
//
// SummarizeTraining: summarises the nodes from which a step computes its updates, so that a
// parameter server can tell whether all workers run the same program.
//
// The summary covers the graph as the client has written it: from the ops with an
// OpDef::update_rule (training ops, and ops that add to a gradient sum) backwards along data edges
// to variables, constants and input. It has each node's op, attributes, order of inputs, and which
// output each input is; also the name of a variable, and the value (the first 64 KiB) of a numeric
// constant. So workers differ if each has a number of its own as a constant of its graph: an index
// into the data, the worker's share of the data, or the size of a batch. Workers may feed such
// numbers through placeholders, or put them into datasets.
//
// The summary leaves out what may differ between the workers of one program:
// - nodes that are not on such a path: initialisation, saving, summaries, metrics, control edges;
// - the input: placeholders, elements of datasets, and ops that wait for others or use files
//   (queues, readers) count as "a tensor of this type", and the nodes before them are ignored;
// - names of nodes other than variables, devices, containers, shared names, and names of frames, of
//   TensorArrays and of their gradients; names of variables that each task has for itself
//   (kLocalAttr); in names of other variables, the number after "worker", "task" or "replica";
// - nodes that pass their input through (Identity, Print), seeds, strings in constants, and
//   attributes that do not change values: use_locking, parallel_iterations, messages, and private
//   ones ("_class").
// The hash of an update covers loops nested up to three deep; the list of nodes covers all.
#pragma once

#include <vector>

#include "core/compiler/partition/partition.h"
#include "core/graph/graph.h"
#include "distributed/worker/training_program.h"

namespace penstock {

// Returns a summary of those updates in `partitions`, compiled from `graph`, that have kept their
// names; empty if there are none.
TrainingProgram SummarizeTraining(const Graph& graph, const std::vector<Partition>& partitions);

}  // namespace penstock
