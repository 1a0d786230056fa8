// SPDX-License-Identifier: Apache-2.0
//
// Session: runs steps of a graph, in this process or on a cluster:
//
//   auto session = Session::New(program, "grpc://host:2222");  // "" is this process
//   auto outputs = (*session)->Run({{x, batch}}, {loss, accuracy}, {train});
//
// Run, MakeCallable and StartPartialRun first send the nodes that were added to the graph since the
// last call. Borrows the graph, which must outlive the session. Thread-safe, as long as no thread
// adds nodes to the graph at the same time. Errors are those of SessionInterface
// (distributed/session/session.h), with the source line of the node that failed, if it is known. If
// building the graph has set the graph's error, each of the three functions returns that error.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/tensor_ref.h"
#include "core/base/mutex.h"
#include "core/graph/builder.h"
#include "distributed/session/session.h"

namespace penstock::client {

struct Feed {
  TensorRef tensor;
  Tensor value;
};

class Session;

// A step that is prepared once and run many times, without looking up names again. Borrows its
// session. Thread-safe, except for moving and destruction.
class Callable {
 public:
  Callable(Callable&& other) noexcept;
  Callable& operator=(Callable&& other) noexcept;
  ~Callable();

  // `feeds` and the result are in the order given to MakeCallable.
  StatusOr<std::vector<Tensor>> operator()(const std::vector<Tensor>& feeds = {},
                                           const RunOptions& options = {},
                                           RunMetadata* metadata = nullptr) const;

 private:
  friend class Session;
  Callable(const Session* session, SessionInterface::CallableId id) : session_(session), id_(id) {}
  const Session* session_;  // null if moved from
  SessionInterface::CallableId id_;
};

// A partial run that has begun: feeds of later calls may depend on fetches of earlier ones. Borrows
// its session. Thread-safe.
class PartialRun {
 public:
  // Feeds and fetches some of the tensors that were given to StartPartialRun, each tensor once.
  // Returns InvalidArgument, without any effect, if a fetch needs feeds that have not been fed.
  // After any other error, or when all tensors were fed and fetched, the step has ended.
  StatusOr<std::vector<Tensor>> Run(const std::vector<Feed>& feeds,
                                    const std::vector<TensorRef>& fetches,
                                    const RunOptions& options = {});

 private:
  friend class Session;
  PartialRun(const Session* session, std::string handle)
      : session_(session), handle_(std::move(handle)) {}
  const Session* session_;
  std::string handle_;
};

class Session {
 public:
  // Does not contact the master; the first call that needs the master does. InvalidArgument if the
  // target is neither "" nor "grpc://host:port".
  static StatusOr<std::unique_ptr<Session>> New(const GraphBuilder& graph,
                                                const std::string& target = "",
                                                const SessionOptions& options = {});
  Session(const GraphBuilder& graph, std::unique_ptr<SessionInterface> session)
      : graph_(graph), session_(std::move(session)) {}

  // Sets the timeout of calls to Run, Fetch and Execute that do not set one. The timeout in the
  // session's options still applies to all other calls. Call this before the first run.
  void set_run_timeout_ms(int64_t timeout_ms) { run_timeout_ms_ = timeout_ms; }

  // Returns the values of `fetches`, in order, after `targets` have run too.
  StatusOr<std::vector<Tensor>> Run(const std::vector<Feed>& feeds,
                                    const std::vector<TensorRef>& fetches,
                                    const std::vector<TensorRef>& targets = {},
                                    const RunOptions& options = {},
                                    RunMetadata* metadata = nullptr);
  StatusOr<std::vector<Tensor>> Run(const std::vector<TensorRef>& fetches) {
    return Run({}, fetches);
  }
  // Fetches one tensor.
  StatusOr<Tensor> Fetch(const TensorRef& tensor, const std::vector<Feed>& feeds = {});
  // Runs a node without fetching anything. `op` is any output of the node, or the node's name.
  Status Execute(const TensorRef& op, const std::vector<Feed>& feeds = {});

  StatusOr<Callable> MakeCallable(const std::vector<TensorRef>& feeds,
                                  const std::vector<TensorRef>& fetches,
                                  const std::vector<TensorRef>& targets = {});

  // Begins a step in which all `feeds` will be fed, all `fetches` fetched, and `targets` run.
  StatusOr<PartialRun> StartPartialRun(const std::vector<TensorRef>& feeds,
                                       const std::vector<TensorRef>& fetches,
                                       const std::vector<TensorRef>& targets = {});

  // Returns the devices that nodes may be placed on; feeds enter the graph on the first one.
  StatusOr<std::vector<DeviceInfo>> ListDevices();

  // Closes every session of the master at `target` and drops the resources in the named containers
  // on all its tasks. An empty list means the default container.
  static Status Reset(const std::string& target, const std::vector<std::string>& containers = {},
                      const SessionOptions& options = {});

  // Cancels running steps and frees the session's resources. The destructor does the same, but
  // ignores errors.
  Status Close() { return session_->Close(); }

 private:
  friend class Callable;
  friend class PartialRun;
  Status Extend() ABSL_LOCKS_EXCLUDED(mu_);
  // Adds to an error of a step the line of the program that made the failed node, if it is known.
  Status WithLine(const Status& status) const;

  const GraphBuilder& graph_;
  const std::unique_ptr<SessionInterface> session_;
  Mutex mu_;                        // serialises Extends; lock it before session_'s mutex
  std::atomic<int> nodes_sent_{0};  // changed under mu_
  int64_t run_timeout_ms_ = 0;
};

}  // namespace penstock::client
