// SPDX-License-Identifier: Apache-2.0
//
// MemoryPlan: a placed graph, an order for its nodes, and the memory that the step takes in this
// order. Its functions lower this memory by changing graph and order together.
//
//   MemoryPlan plan(&graph, costs, order, limit);
//   plan.SplitSums();
//   plan.LowerByOrder();
//   plan.LowerBy(MemoryPlan::Method::kRecompute);
//   plan.LowerBy(MemoryPlan::Method::kSwap);
//   if (plan.Fits()) plan.KeepOrder();
//
// The step's results stay bitwise the same: a copy of a node computes the same values again, and a
// swapped tensor is read back unchanged. A MemoryPlan does not copy or order nodes that may be dead
// (behind a Switch), because a control edge from such a node would make another node dead.
#pragma once

#include <optional>
#include <vector>

#include "core/compiler/memory/memory_model.h"
#include "core/compiler/memory/worst_case.h"
#include "core/compiler/pass/cost_table.h"
#include "core/graph/graph.h"

namespace penstock {

class MemoryPlan {
 public:
  enum class Method {
    kRecompute,  // runs cheap stateless nodes a second time, shortly before late readers
    kSwap,       // writes tensors to a file, and reads them before late readers; on CPUs only
  };

  // `order` must meet the conditions of MemoryModel::Profile. `limit` is in bytes, for each device.
  // Borrows the graph and the costs.
  MemoryPlan(Graph* graph, const CostTable& costs, std::vector<Node*> order, double limit);

  // A device is near the limit if its peak is above this share of the limit, or its worst case
  // (worst_case.h) above the limit. KeepOrder adds control edges to such devices, because without
  // them an executor may run nodes in another order than predicted, and several at once.
  static constexpr double kNearLimitShare = 0.9;
  // Returns whether a device is near the limit now, or was near it in an earlier order.
  bool IsNearLimit() const;
  bool Fits() const { return profile_.Excess(limit_) == 0; }
  // Replaces each sum whose inputs take more than a quarter of the limit by a chain of sums of two
  // inputs, so that not all inputs need be in memory at the same time. (Such sums add the gradients
  // of a weight that is used in many places.) Changes only sums on devices near the limit, and no
  // sums of half or bfloat16, because a chain would round these more often. Internal if the graph
  // rejects a node.
  Status SplitSums();
  // Replaces the order by one that LowPeakOrder finds, if that is better. Devices that are not near
  // the limit still run each node as soon as it is ready.
  void LowerByOrder();
  // Frees buffers by the method `means` until the step fits, or until no attempt lowers the excess,
  // or the search has simulated too many nodes. Internal if the graph rejects a node.
  Status LowerBy(Method means);
  // Adds control edges to devices that are near the limit, or were near it in an earlier order.
  // With these edges, the executors keep the order of all nodes that make or read much memory.
  // Leaves out edges that could make a node wait for itself by way of a queue or a collective
  // (order_chain.h). First chains only the nodes that make or read buffers of MinBufferBytes() or
  // more; if other orders may then still exceed the limit, all nodes but constants. If tensors on
  // their way between devices may still exceed it, lets the devices wait for each other, too.
  void KeepOrder();
  // Returns, by device, an upper bound of the memory that the step can take in any order of
  // execution. Valid until the plan changes the graph. Computed only once for each state of it.
  const std::vector<WorstPeak>& AtWorst() const;
  // Returns whether no order of execution can exceed the limit.
  bool AlwaysFits() const;

  const MemoryModel& model() const { return model_; }
  const MemoryProfile& profile() const { return profile_; }
  const std::vector<Node*>& order() const { return order_; }
  int num_recomputed() const { return num_recomputed_; }  // nodes that run a second time
  int num_swapped() const { return num_swapped_; }        // tensors that are written to files

 private:
  friend class Restoring;
  using Buffer = MemoryProfile::Buffer;

  // The size in bytes below which a buffer is not worth an additional node or control edge.
  double MinBufferBytes() const { return limit_ / 1024; }
  void FindConditional();
  bool IsLargeSum(const Node& node) const;
  StatusOr<std::vector<Node*>> Split(Node* sum);
  std::vector<int> CandidatesAt(int device, int position) const;
  StatusOr<bool> LowerOnce(Method means);
  // Returns, by id, the nodes that make or read a buffer of at least `bytes_min` bytes.
  std::vector<bool> NodesToOrder(double bytes_min) const;
  // By node id: nodes of other devices for which a node waits.
  using Waits = std::vector<std::vector<Node*>>;
  void Chain(const std::vector<bool>& wanted, const Waits& waits = {});
  bool IsChained(const Node& node) const;
  Waits WaitsBetweenDevices(double bytes_min) const;
  // Adds to near_limit_ the devices that are near the limit now.
  void FindNearLimit();

  Graph& graph_;
  const CostTable& costs_;
  const double limit_;
  MemoryModel model_;
  std::vector<Node*> order_;
  MemoryProfile profile_;
  // The result of AtWorst(), if it is known and neither graph nor order have changed since.
  mutable std::optional<std::vector<WorstPeak>> worst_;
  std::vector<bool> near_limit_;   // by device: true if it is or was near the limit
  std::vector<bool> conditional_;  // by node id: true if the node may be dead
  int num_recomputed_ = 0, num_swapped_ = 0;
  int64_t visits_left_;  // how many more nodes the search may simulate
};

}  // namespace penstock
