// SPDX-License-Identifier: Apache-2.0
//
// TestProgram: a graph for tests of the compiler, with functions that build and compile it. Also a
// registry of small ops with kernels, and a cluster of three devices.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/scheduler.h"
#include "core/compiler/compile.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"
#include "core/op/registry.h"

namespace penstock {

// Unless noted, ops work on floats and have no shape function.
//
//   Const, Shape, Identity, PreventGradient, RefIdentity, _Feed, _Fetch, _Send, _Recv and the
//     control-flow ops: as the real ones (LoopCond and predicates are floats here)
//   Input: a value.  Ask: a placeholder.  Noise: a stateful value.  Group: no inputs and outputs
//   Sum2: a + b, commutative.  Heavy: one input, one output; also for a GPU
//   OnGpu: as Heavy, but only for a GPU
//   Pair: returns its two inputs.  Move: returns its input, of any type.  Cast: from SrcT to DstT
//   Use: as Heavy, but stateful.  Huge: an output of 4 GB; when it runs, HugeRan returns true
//   Product: a MatMul, with its flops.  AddN, _SwapOut, _SwapIn: as the real ones
//   Stage: puts its input into a staging area.  Unstage: waits for an element and takes it
//   Var: a variable.  Update: ref, by -> ref.  Train: ref, rate, grad -> ref.  Bump: ref -> ref
//
// The kernels of Const, Sum2 and Merge (a sum here) work; the kernels of the other ops fail.
const Registry& CompilerTestOps();
bool HugeRan();

inline constexpr char kPs[] = "/job:ps/replica:0/task:0/device:CPU:0";
inline constexpr char kWorker[] = "/job:worker/replica:0/task:0/device:CPU:0";
inline constexpr char kWorker1[] = "/job:worker/replica:0/task:1/device:CPU:0";

// Returns the devices kPs, kWorker and kWorker1, with incarnations 11, 22 and 33.
std::vector<DeviceInfo> TestCluster();

struct NodeOptions {
  std::string device = "";
  Attrs attrs = {};
  std::vector<Node*> after = {};  // control inputs
};

struct TestProgram {
  // Aborts the process if the node cannot be added.
  Node* Add(const std::string& name, const std::string& op, std::vector<Endpoint> inputs = {},
            const NodeOptions& more = {});
  Node* Constant(const std::string& name, std::vector<float> values, const NodeOptions& more = {});

  // Compiles for a client on kWorker and keeps the graph of each pass.
  StatusOr<std::vector<Partition>> Compile(const std::vector<std::string>& feeds,
                                           const std::vector<std::string>& fetches,
                                           const std::vector<std::string>& targets = {});
  // Returns the graph after a pass; for "partition" and later passes, that of the last partition.
  // REQUIRES: Compile has run the pass.
  const Graph& After(const std::string& pass) const { return after.at(pass); }
  // Returns the node's device after "place".
  std::string DeviceOf(const std::string& node) const {
    return After("place").FindNode(node)->assigned_device();
  }

  Graph graph{CompilerTestOps()};
  std::vector<DeviceInfo> devices = TestCluster();
  CompileOptions options{.env = &Env::Real(),
                         .threads = &Scheduler::Real(),
                         .client_device = *DeviceName::Parse(kWorker)};
  CompileReport report;
  std::map<std::string, Graph> after;  // by pass
};

// Builds the loop "f": while (x) x = x + x + k, where k enters as a constant. All nodes are on
// kWorker, except "sum" and "plus", which are on kPs, and "next", which asks for kWorker1. "exit"
// is the loop's result.
struct LoopTestProgram : TestProgram {
  LoopTestProgram();
};

int CountOps(const Graph& graph, const std::string& op);

}  // namespace penstock
