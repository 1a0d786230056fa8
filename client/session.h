// SPDX-License-Identifier: Apache-2.0
//
// Session: runs parts of a graph, in this process or on a cluster, by target:
//
//   auto session = Session::New(program, "grpc://host:2222");  // "" is this process
//   auto outputs = (*session)->Run({{x, batch}}, {loss, accuracy}, {train});
//
// Nodes added to the graph since the last call are sent along by themselves. Borrows the graph,
// which must outlive it. Thread-safe, as long as nobody adds nodes to the graph at the same time.
// Errors are those of SessionInterface (distributed/session/session.h); a mistake made while
// building the graph comes back from the first call.
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

// A step prepared once and run many times, without looking names up again. Borrows its session.
// Thread-safe, but for moving and destruction.
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
  Callable(SessionInterface* session, SessionInterface::CallableId id)
      : session_(session), id_(id) {}
  SessionInterface* session_;  // null if moved from
  SessionInterface::CallableId id_;
};

// A step in instalments, begun: what the client feeds may depend on what it has fetched. Borrows
// its session. Thread-safe.
class PartialRun {
 public:
  // Feeds some and fetches some of what StartPartialRun named, each tensor once. InvalidArgument,
  // and nothing has changed, if a fetch needs feeds that are still to come. After any other
  // error, or when everything was fed and fetched, the step has ended.
  StatusOr<std::vector<Tensor>> Run(const std::vector<Feed>& feeds,
                                    const std::vector<TensorRef>& fetches,
                                    const RunOptions& options = {});

 private:
  friend class Session;
  PartialRun(SessionInterface* session, std::string handle)
      : session_(session), handle_(std::move(handle)) {}
  SessionInterface* session_;
  std::string handle_;
};

class Session {
 public:
  // Talks to nobody before the first call that needs it. InvalidArgument on a target that is
  // neither "" nor "grpc://host:port".
  static StatusOr<std::unique_ptr<Session>> New(const GraphBuilder& graph,
                                                const std::string& target = "",
                                                const SessionOptions& options = {});
  Session(const GraphBuilder& graph, std::unique_ptr<SessionInterface> session)
      : graph_(graph), session_(std::move(session)) {}

  // The deadline of runs that bring none of their own, in place of the one in the options, which
  // is then left to making the session. Before the first run.
  void set_run_timeout_ms(int64_t timeout_ms) { run_timeout_ms_ = timeout_ms; }

  // The values of `fetches`, in order, after `targets` have run too.
  StatusOr<std::vector<Tensor>> Run(const std::vector<Feed>& feeds,
                                    const std::vector<TensorRef>& fetches,
                                    const std::vector<TensorRef>& targets = {},
                                    const RunOptions& options = {},
                                    RunMetadata* metadata = nullptr);
  StatusOr<std::vector<Tensor>> Run(const std::vector<TensorRef>& fetches) {
    return Run({}, fetches);
  }
  // One tensor.
  StatusOr<Tensor> Fetch(const TensorRef& tensor, const std::vector<Feed>& feeds = {});
  // For effect only. `op` is any output of the node, or its name.
  Status Execute(const TensorRef& op, const std::vector<Feed>& feeds = {});

  StatusOr<Callable> MakeCallable(const std::vector<TensorRef>& feeds,
                                  const std::vector<TensorRef>& fetches,
                                  const std::vector<TensorRef>& targets = {});

  // Begins a step in which all `feeds` will be fed, all `fetches` fetched, and `targets` run.
  StatusOr<PartialRun> StartPartialRun(const std::vector<TensorRef>& feeds,
                                       const std::vector<TensorRef>& fetches,
                                       const std::vector<TensorRef>& targets = {});

  // Those that nodes may be placed on; the first is where feeds enter.
  StatusOr<std::vector<DeviceInfo>> ListDevices();

  // Closes every session of the master at `target` and drops what the named containers hold on all
  // its tasks; no name means the default container.
  static Status Reset(const std::string& target, const std::vector<std::string>& containers = {},
                      const SessionOptions& options = {});

  // Cancels running steps and frees what the session holds. Destruction closes too, without
  // telling how it went.
  Status Close() { return session_->Close(); }

 private:
  Status Extend() ABSL_LOCKS_EXCLUDED(mu_);

  const GraphBuilder& graph_;
  const std::unique_ptr<SessionInterface> session_;
  Mutex mu_;                        // one Extend at a time; locked before session_'s
  std::atomic<int> nodes_sent_{0};  // changed under mu_
  int64_t run_timeout_ms_ = 0;
};

}  // namespace penstock::client
