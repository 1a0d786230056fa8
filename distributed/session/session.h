// SPDX-License-Identifier: Apache-2.0
//
// SessionInterface: a graph and the means to run parts of it, on this process or on a cluster. What
// the client library wraps; local and remote sessions behave alike.
//
// Thread-safe: any number of threads may Run at the same time; an Extend is serialised
// against concurrent Runs. A session stays usable after an error of one of its steps. Every call
// ends within its deadline, in success or in one error that names the first cause.
//
// Errors, as a training loop reads them: Aborted (a task was restarted, the session is gone) and
// Unavailable (a task cannot be reached): make a new session and go on from the last checkpoint.
// OutOfRange: the input has ended. Anything else: a mistake, or a limit.
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
  // Deadline of every operation that does not bring one. 0: a minute for those that only talk to
  // tasks; a day for steps of several tasks; none for steps of this process.
  int64_t operation_timeout_ms = 0;
  // A device constraint that cannot be met is relaxed.
  bool allow_soft_placement = false;
  // Prints, when a step is prepared, on which device each of its nodes runs: to standard error of
  // the process that the session's master is in.
  bool log_device_placement = false;
  // False: of the compiler's passes only those run without which no step does.
  bool optimize = true;
  // Optional passes of the compiler that are left out, by name: "fold", "merge", "sweep", ...
  // (`penstock graph --help` lists them). InvalidArgument, when the session is made, if there is no
  // such pass or if steps need it.
  std::vector<std::string> disabled_passes = {};
  // Rounds floats to bfloat16 while they travel between tasks: half of the bytes, 8 instead of 24
  // significant bits. What is kept, and feeds and fetches stay exact, and nodes may choose for
  // themselves: docs/session_options.md.
  bool bfloat16_transfers = false;
  // The placement of nodes that name no job. "client": on the task that is addressed. "auto": on
  // any task; some steps are measured, and if another placement is predicted to be a tenth
  // quicker, the step is placed anew. Variables and other state are placed once, by the whole
  // graph, and stay; a second client would put them elsewhere, so graphs that several clients share
  // name their jobs.
  std::string placement = "client";
  // The most bytes that the tensors of one step may take on each device; 0: no limit. Variables and
  // feeds do not count. What a step takes is predicted when it is prepared. If that is too much,
  // its nodes run in an order that takes less, cheap ones run twice, and tensors wait in a file:
  // results stay the same, bit for bit, and the step takes longer. RESOURCE_EXHAUSTED with a list
  // of tensors if it does not fit nevertheless, before anything runs; FAILED_PRECONDITION if it has
  // a loop. InvalidArgument, when the session is made, if it is negative. docs/session_options.md.
  int64_t memory_limit = 0;
  // How often RunMetadata::cost_graph is filled: in each build_cost_model-th execution of a step,
  // after the first build_cost_model_after. 0: never. Such an execution is measured, which costs
  // two clock readings per node, and compiles the step a second time.
  int64_t build_cost_model = 0;
  int64_t build_cost_model_after = 0;
  // Remote: variables, queues and the like are the session's own and go with it. Local sessions
  // always are so.
  bool isolate_state = false;
  // Remote: only tasks that match one of these ("/job:ps", "/job:worker/task:0") are contacted and
  // used, besides the one that is addressed. Empty: all.
  std::vector<std::string> device_filters = {};
};

struct RunOptions {
  int64_t timeout_ms = 0;         // 0: the session's
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

// By tensor name, "x:0" or "x".
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

  // Closes it.
  virtual ~SessionInterface() = default;

  // Takes over the nodes that `graph` has gained since the last call. `graph` is the whole graph;
  // nodes that the session has already seen must still be there and are not looked at again.
  virtual Status Extend(const Graph& graph) = 0;

  // Runs what `fetches` (tensors, "y:0" or "y") and `targets` (nodes) need, with the values of
  // `feeds` in place of what the graph would compute for them. `outputs` are in the order of
  // `fetches`: all of them, or none and an error. `metadata` may be null.
  virtual Status Run(const RunOptions& options, const Feeds& feeds,
                     const std::vector<std::string>& fetches,
                     const std::vector<std::string>& targets, std::vector<Tensor>* outputs,
                     RunMetadata* metadata) = 0;

  virtual StatusOr<CallableId> MakeCallable(const CallableSpec& spec) = 0;
  // `feeds` and `outputs` in the order of the CallableSpec.
  virtual Status RunCallable(CallableId callable, const RunOptions& options,
                             absl::Span<const Tensor> feeds, std::vector<Tensor>* outputs,
                             RunMetadata* metadata) = 0;
  virtual Status ReleaseCallable(CallableId callable) = 0;

  // A step in instalments: SetUpPartialRun names all that will be fed and fetched, and begins it;
  // each RunPartial feeds and fetches some of that, and waits for what it fetches. A tensor is fed
  // once and fetched once, and a fetch must not need feeds that are still to come:
  // InvalidArgument, which names them and changes nothing. The step ends when everything was fed
  // and fetched, with an error that one of the calls returns, or with the session.
  virtual StatusOr<std::string> SetUpPartialRun(const CallableSpec& spec) = 0;
  virtual Status RunPartial(const std::string& handle, const RunOptions& options,
                            const Feeds& feeds, const std::vector<std::string>& fetches,
                            std::vector<Tensor>* outputs) = 0;

  // Those that nodes may be placed on; the first is where feeds enter.
  virtual StatusOr<std::vector<DeviceInfo>> ListDevices() = 0;

  // Cancels running steps, waits for their end and frees what the session holds. Later calls end
  // with FailedPrecondition "Session is closed.".
  virtual Status Close() = 0;
};

// In this process, on its devices, with variables of its own.
StatusOr<std::unique_ptr<SessionInterface>> NewLocalSession(const SessionOptions& options);

// On the cluster of the task at `target`, "grpc://host:port". Contacts nobody before the first
// Extend or Run. A task of this process, addressed as its Server::target() says, is not called over
// the network: tensors are shared with it.
StatusOr<std::unique_ptr<SessionInterface>> NewRemoteSession(const std::string& target,
                                                             const SessionOptions& options,
                                                             Env& env = Env::Real());

// Closes every session of the master at `target` and drops what the named containers hold on all
// tasks; an empty list means the default container.
Status ResetCluster(const std::string& target, const std::vector<std::string>& containers,
                    const SessionOptions& options);

}  // namespace penstock
