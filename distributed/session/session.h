// SPDX-License-Identifier: Apache-2.0
//
// SessionInterface: holds a graph, and runs parts of it in this process or on a cluster. The client
// library wraps this interface. Local and remote sessions behave alike.
//
// Thread-safe: any number of threads may Run at the same time; an Extend is serialised
// against concurrent Runs. A session stays usable after an error of one of its steps. Every call
// ends within its deadline, in success or in one error that names the first cause.
//
// Errors, and how a training loop handles them. Aborted (a task was restarted, or the session is
// gone) or Unavailable (a task cannot be reached): make a new session, and continue from the last
// checkpoint. OutOfRange: the input has ended. Any other code: a mistake, or a limit was exceeded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/cancellation.h"
#include "core/base/env.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/op/device_name.h"
#include "core/runtime/step_stats.h"
#include "core/tensor/tensor.h"
#include "distributed/session/cost_graph.h"

namespace penstock {

struct SessionOptions {
  // The timeout of every operation that does not set one. 0: a minute for operations that only call
  // tasks, a day for steps of several tasks, none for steps in this process.
  int64_t operation_timeout_ms = 0;
  // If true, device constraints that cannot be met are relaxed.
  bool allow_soft_placement = false;
  // If true, the session's master prints the device of each node to its standard error when it
  // prepares a step.
  bool log_device_placement = false;
  // If true, the optional passes of the compiler run. If false, only the passes that every step
  // needs run.
  bool optimize = true;
  // Names of optional passes of the compiler to leave out: "fold", "merge", "sweep", ...
  // (`penstock graph --help` lists them). Making the session returns InvalidArgument if there is no
  // such pass, or if it is not optional.
  std::vector<std::string> disabled_passes = {};
  // Whether to round floats to bfloat16 when they are sent between tasks: half of the bytes, and 8
  // instead of 24 significant bits. Variables, feeds and fetches stay exact. An attribute of a node
  // overrides this: docs/session_options.md.
  bool bfloat16_transfers = false;
  // The placement of nodes whose device names no job. "client": on the task to which the client has
  // connected. "auto": on any task; the master measures some steps, and places a step again if
  // another placement is predicted to be a tenth quicker. Variables and other state are placed only
  // once, by the whole graph. A second client might place them on other tasks, so graphs that
  // several clients share must name jobs.
  std::string placement = "client";
  // The maximum number of bytes that the tensors of one step may take on each device; 0: no limit.
  // Variables and feeds do not count. The memory of a step is predicted when it is prepared. If it
  // exceeds the limit, nodes run in an order that takes less memory, cheap nodes run twice, and
  // tensors wait in a file: the results stay the same, bit for bit, and the step takes longer.
  // Preparing the step returns RESOURCE_EXHAUSTED with a list of tensors if it still does not fit,
  // and FAILED_PRECONDITION if it has a loop. Making the session returns InvalidArgument if the
  // limit is negative. See docs/session_options.md.
  int64_t memory_limit = 0;
  // How often RunMetadata::cost_graph is filled: in each build_cost_model-th execution of a step,
  // after its first build_cost_model_after executions. 0: never. Such an execution is measured,
  // which costs two clock readings per node, and compiles the step a second time.
  int64_t build_cost_model = 0;
  int64_t build_cost_model_after = 0;
  // Whether a remote session has variables, queues and other resources of its own, which end with
  // it. A local session always has its own.
  bool isolate_state = false;
  // For remote sessions: only the master's task, and tasks that match one of these filters
  // ("/job:ps", "/job:worker/task:0"), are contacted and used. Empty: all tasks.
  std::vector<std::string> device_filters = {};
};

struct RunOptions {
  int64_t timeout_ms = 0;         // 0: the session's operation_timeout_ms
  bool trace = false;             // fill RunMetadata::step_stats
  bool partition_graphs = false;  // fill RunMetadata::partition_graphs
  // Ends the step early. Borrowed until Run returns.
  Cancellation* cancellation = nullptr;
};

struct RunMetadata {
  std::vector<DeviceStats> step_stats;
  // The partitions of the compiled step, in order of device name.
  std::vector<std::pair<std::string, Graph>> partition_graphs;
  std::vector<CostNode> cost_graph;  // empty unless SessionOptions::build_cost_model asks for it
};

// The fed tensors by name, "x:0" or "x".
using Feeds = std::vector<std::pair<std::string, Tensor>>;

// A step that is prepared once and run many times, without looking names up again.
struct CallableSpec {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
};

class SessionInterface {
 public:
  using CallableId = int64_t;

  // Closes the session.
  virtual ~SessionInterface() = default;

  // Adds the nodes that `graph` has gained since the last call. `graph` is the whole graph. Nodes
  // that the session already has must still be in it; changes of them are ignored.
  virtual Status Extend(const Graph& graph) = 0;

  // Runs the nodes that `fetches` (tensors, "y:0" or "y") and `targets` (nodes) need. The values of
  // `feeds` replace the values that the graph would compute for these tensors. `outputs` are in the
  // order of `fetches`; if the step fails, `outputs` is empty. `metadata` may be null.
  virtual Status Run(const RunOptions& options, const Feeds& feeds,
                     const std::vector<std::string>& fetches,
                     const std::vector<std::string>& targets, std::vector<Tensor>* outputs,
                     RunMetadata* metadata) = 0;

  virtual StatusOr<CallableId> MakeCallable(const CallableSpec& spec) = 0;
  // Runs a callable. `feeds` and `outputs` are in the order of the CallableSpec.
  virtual Status RunCallable(CallableId callable, const RunOptions& options,
                             absl::Span<const Tensor> feeds, std::vector<Tensor>* outputs,
                             RunMetadata* metadata) = 0;
  virtual Status ReleaseCallable(CallableId callable) = 0;

  // Run a step in several calls (a partial run). SetUpPartialRun names all feeds and fetches, and
  // begins the step. Each RunPartial feeds and fetches some of them, and waits for its fetches.
  // InvalidArgument, which leaves the step unchanged, names tensors that were fed or fetched
  // before, and feeds that a fetch still needs. The step ends when everything was fed and fetched,
  // when one of the calls returns another error, or with the session.
  virtual StatusOr<std::string> SetUpPartialRun(const CallableSpec& spec) = 0;
  virtual Status RunPartial(const std::string& handle, const RunOptions& options,
                            const Feeds& feeds, const std::vector<std::string>& fetches,
                            std::vector<Tensor>* outputs) = 0;

  // Returns the devices on which nodes may be placed. Feeds enter at the first one.
  virtual StatusOr<std::vector<DeviceInfo>> ListDevices() = 0;

  // Cancels running steps, waits for their end and frees what the session holds. Later calls end
  // with FailedPrecondition "Session is closed.".
  virtual Status Close() = 0;
};

// Makes a session in this process, on its devices, with variables of its own.
StatusOr<std::unique_ptr<SessionInterface>> NewLocalSession(const SessionOptions& options);

// Makes a session on the cluster of the task at `target`, "grpc://host:port". Makes no call before
// the first Extend or Run. If `target` is the Server::target() of a task in this process, the
// session does not use the network, and shares tensors with the task.
StatusOr<std::unique_ptr<SessionInterface>> NewRemoteSession(const std::string& target,
                                                             const SessionOptions& options,
                                                             Env& env = Env::Real());

// Closes every session of the master at `target`, and deletes the resources in the named containers
// on all tasks. An empty list means the default container.
Status ResetCluster(const std::string& target, const std::vector<std::string>& containers,
                    const SessionOptions& options);

}  // namespace penstock
