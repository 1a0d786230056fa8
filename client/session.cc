// SPDX-License-Identifier: Apache-2.0
#include "client/session.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "client/functions/graph_function.h"
#include "core/base/error_origin.h"

namespace penstock::client {
namespace {

constexpr char kRemote[] = "grpc://";

std::vector<std::string> Names(const std::vector<TensorRef>& tensors) {
  std::vector<std::string> names;
  names.reserve(tensors.size());
  for (const TensorRef& tensor : tensors) names.push_back(tensor.name);
  return names;
}

Feeds Values(const std::vector<Feed>& feeds) {
  Feeds values;
  values.reserve(feeds.size());
  for (const Feed& feed : feeds) values.emplace_back(feed.tensor.name, feed.value);
  return values;
}

// Returns the name of the node of each tensor.
std::vector<std::string> NodeNames(const std::vector<TensorRef>& tensors) {
  std::vector<std::string> names;
  names.reserve(tensors.size());
  for (const TensorRef& tensor : tensors) {
    names.push_back(tensor.name.substr(0, tensor.name.find(':')));
  }
  return names;
}

// Removes ":0", because "x" and "x:0" are one tensor.
string_view WithoutZero(const std::string& name) { return absl::StripSuffix(name, ":0"); }

const Feed* FindFeed(const std::vector<Feed>& feeds, const TensorRef& fetch) {
  for (const Feed& feed : feeds) {
    if (WithoutZero(feed.tensor.name) == WithoutZero(fetch.name)) return &feed;
  }
  return nullptr;
}

}  // namespace

Callable::Callable(Callable&& other) noexcept
    : session_(std::exchange(other.session_, nullptr)), id_(other.id_) {}

Callable& Callable::operator=(Callable&& other) noexcept {
  std::swap(session_, other.session_);
  std::swap(id_, other.id_);
  return *this;
}

Callable::~Callable() {
  // Ignores the error, which means that the session is closed and has released the callable.
  if (session_ != nullptr) session_->session_->ReleaseCallable(id_).IgnoreError();
}

StatusOr<std::vector<Tensor>> Callable::operator()(const std::vector<Tensor>& feeds,
                                                   const RunOptions& options,
                                                   RunMetadata* metadata) const {
  CHECK(session_ != nullptr, "a callable that was moved from");
  std::vector<Tensor> outputs;
  RETURN_IF_ERROR(
      session_->WithLine(session_->session_->RunCallable(id_, options, feeds, &outputs, metadata)));
  return outputs;
}

StatusOr<std::unique_ptr<Session>> Session::New(const GraphBuilder& graph,
                                                const std::string& target,
                                                const SessionOptions& options) {
  if (!target.empty() && !absl::StartsWith(target, kRemote)) {
    return InvalidArgument("session target '", target,
                           "': expected \"grpc://host:port\", or \"\" for this process");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<SessionInterface> session,
                   target.empty() ? NewLocalSession(options) : NewRemoteSession(target, options));
  return std::make_unique<Session>(graph, std::move(session));
}

Status Session::Extend() {
  RETURN_IF_ERROR(graph_.status());
  const int num_nodes = graph_.graph().max_id();
  if (nodes_sent_.load(std::memory_order_acquire) == num_nodes) return OkStatus();
  MutexLock lock(mu_);
  if (nodes_sent_.load(std::memory_order_relaxed) == num_nodes) return OkStatus();
  RETURN_IF_ERROR(session_->Extend(graph_.graph()));
  nodes_sent_.store(num_nodes, std::memory_order_release);
  return OkStatus();
}

Status Session::WithLine(const Status& status) const {
  if (status.ok()) return status;
  const Node* const node = graph_.graph().FindNode(FailedNode(status));
  return node == nullptr ? WithFunctionLine(graph_, status)
                         : MadeAt(status, graph_.SourceLineOf(*node));
}

StatusOr<std::vector<Tensor>> Session::Run(const std::vector<Feed>& feeds,
                                           const std::vector<TensorRef>& fetches,
                                           const std::vector<TensorRef>& targets,
                                           const RunOptions& options, RunMetadata* metadata) {
  RETURN_IF_ERROR(Extend());
  // A tensor that is both fed and fetched is returned unchanged, without running the graph for it.
  std::vector<Tensor> outputs(fetches.size());
  std::vector<std::string> computed;
  std::vector<size_t> places;
  for (size_t i = 0; i < fetches.size(); ++i) {
    const Feed* fed = FindFeed(feeds, fetches[i]);
    if (fed != nullptr) {
      outputs[i] = fed->value;
    } else {
      computed.push_back(fetches[i].name);
      places.push_back(i);
    }
  }
  if (computed.empty() && targets.empty() && !fetches.empty()) return outputs;
  std::vector<Tensor> found;
  RunOptions run = options;
  if (run.timeout_ms == 0) run.timeout_ms = run_timeout_ms_;
  RETURN_IF_ERROR(
      WithLine(session_->Run(run, Values(feeds), computed, NodeNames(targets), &found, metadata)));
  for (size_t i = 0; i < places.size(); ++i) outputs[places[i]] = std::move(found[i]);
  return outputs;
}

StatusOr<Tensor> Session::Fetch(const TensorRef& tensor, const std::vector<Feed>& feeds) {
  ASSIGN_OR_RETURN(std::vector<Tensor> outputs, Run(feeds, {tensor}));
  return std::move(outputs[0]);
}

Status Session::Execute(const TensorRef& op, const std::vector<Feed>& feeds) {
  return Run(feeds, {}, {op}).status();
}

StatusOr<Callable> Session::MakeCallable(const std::vector<TensorRef>& feeds,
                                         const std::vector<TensorRef>& fetches,
                                         const std::vector<TensorRef>& targets) {
  RETURN_IF_ERROR(Extend());
  ASSIGN_OR_RETURN(
      const SessionInterface::CallableId id,
      session_->MakeCallable(
          {.feeds = Names(feeds), .fetches = Names(fetches), .targets = NodeNames(targets)}));
  return Callable(this, id);
}

StatusOr<PartialRun> Session::StartPartialRun(const std::vector<TensorRef>& feeds,
                                              const std::vector<TensorRef>& fetches,
                                              const std::vector<TensorRef>& targets) {
  RETURN_IF_ERROR(Extend());
  ASSIGN_OR_RETURN(std::string handle, session_->SetUpPartialRun({.feeds = Names(feeds),
                                                                  .fetches = Names(fetches),
                                                                  .targets = NodeNames(targets)}));
  return PartialRun(this, std::move(handle));
}

StatusOr<std::vector<Tensor>> PartialRun::Run(const std::vector<Feed>& feeds,
                                              const std::vector<TensorRef>& fetches,
                                              const RunOptions& options) {
  std::vector<Tensor> outputs;
  RETURN_IF_ERROR(session_->WithLine(
      session_->session_->RunPartial(handle_, options, Values(feeds), Names(fetches), &outputs)));
  return outputs;
}

StatusOr<std::vector<DeviceInfo>> Session::ListDevices() { return session_->ListDevices(); }

Status Session::Reset(const std::string& target, const std::vector<std::string>& containers,
                      const SessionOptions& options) {
  if (!absl::StartsWith(target, kRemote)) {
    return InvalidArgument("reset: target '", target, "': expected \"grpc://host:port\"");
  }
  return ResetCluster(target, containers, options);
}

}  // namespace penstock::client
