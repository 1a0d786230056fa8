// SPDX-License-Identifier: Apache-2.0
//
// Implements the sessions of c_api.h.
#include "distributed/session/session.h"

#include "absl/strings/match.h"
#include "client/c/c_api.h"
#include "client/c/handles.h"
#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "core/graph/graph_proto.h"
#include "core/op/registry.h"
#include "proto/tensorflow/graph.pb.h"

struct PS_Session {
  explicit PS_Session(std::unique_ptr<penstock::SessionInterface> session)
      : session(std::move(session)) {}
  const std::unique_ptr<penstock::SessionInterface> session;
  penstock::Mutex mu;  // held during PS_ExtendSession: one at a time
  penstock::Graph graph ABSL_GUARDED_BY(mu){penstock::Registry::Global()};
};

struct PS_Cancellation {
  penstock::Cancellation cancellation;
};

using namespace penstock;         // NOLINT
using namespace penstock::c_api;  // NOLINT

namespace {

constexpr char kRemote[] = "grpc://";

Status CheckArray(const void* array, int count, const char* what) {
  if (count < 0) return InvalidArgument("the number of ", what, " is ", count);
  return count == 0 ? OkStatus() : NotNull(array, what);
}

StatusOr<std::vector<std::string>> Names(const char* const* names, int count, const char* what) {
  RETURN_IF_ERROR(CheckArray(names, count, what));
  std::vector<std::string> list;
  for (int i = 0; i < count; ++i) {
    RETURN_IF_ERROR(NotNull(names[i], what));
    list.emplace_back(names[i]);
  }
  return list;
}

StatusOr<Feeds> FeedsOf(const PS_Step& step) {
  ASSIGN_OR_RETURN(const auto names, Names(step.feed_names, step.num_feeds, "feed_names"));
  RETURN_IF_ERROR(CheckArray(step.feeds, step.num_feeds, "feeds"));
  Feeds feeds;
  for (int i = 0; i < step.num_feeds; ++i) {
    RETURN_IF_ERROR(NotNull(step.feeds[i], "feeds"));
    feeds.emplace_back(names[i], step.feeds[i]->tensor);
  }
  return feeds;
}

StatusOr<std::vector<Tensor>> RunStep(PS_Session& session, const PS_Step& step) {
  ASSIGN_OR_RETURN(const Feeds feeds, FeedsOf(step));
  ASSIGN_OR_RETURN(const auto fetches, Names(step.fetch_names, step.num_fetches, "fetch_names"));
  ASSIGN_OR_RETURN(const auto targets, Names(step.targets, step.num_targets, "targets"));
  RunOptions options{.timeout_ms = step.timeout_ms};
  if (step.cancellation != nullptr) options.cancellation = &step.cancellation->cancellation;
  std::vector<Tensor> outputs;
  RETURN_IF_ERROR(session.session->Run(options, feeds, fetches, targets, &outputs, nullptr));
  return outputs;
}

}  // namespace

PS_Status* PS_NewSession(const char* target, int64_t timeout_ms, PS_Session** session) {
  return Call([&]() -> Status {
    RETURN_IF_ERROR(NotNull(target, "target"));
    RETURN_IF_ERROR(NotNull(session, "session"));
    const string_view where = target;
    if (!where.empty() && !absl::StartsWith(where, kRemote)) {
      return InvalidArgument("session target '", where,
                             "': expected \"grpc://host:port\", or \"\" for this process");
    }
    if (timeout_ms < 0) return InvalidArgument("timeout_ms is ", timeout_ms, ", must be >= 0");
    const SessionOptions options{.operation_timeout_ms = timeout_ms};
    ASSIGN_OR_RETURN(auto made,
                     where.empty() ? NewLocalSession(options) : NewRemoteSession(target, options));
    *session = new PS_Session(std::move(made));
    return OkStatus();
  });
}

PS_Status* PS_ExtendSession(PS_Session* session, const void* graph_def, size_t size) {
  return Call([&]() -> Status {
    RETURN_IF_ERROR(NotNull(session, "session"));
    if (size > 0) RETURN_IF_ERROR(NotNull(graph_def, "graph_def"));
    tensorflow::GraphDef def;
    if (size > INT32_MAX || !def.ParseFromArray(graph_def, static_cast<int>(size))) {
      return InvalidArgument("graph_def is no GraphDef in binary form");
    }
    MutexLock lock(session->mu);
    const int before = session->graph.max_id();
    RETURN_IF_ERROR(ImportGraph(def, &session->graph));
    const Status extended = session->session->Extend(session->graph);
    if (!extended.ok()) session->graph.RemoveNodesFrom(before);
    return extended;
  });
}

PS_Status* PS_Run(PS_Session* session, const PS_Step* step, size_t step_size, PS_Tensor** fetched) {
  return Call([&]() -> Status {
    RETURN_IF_ERROR(NotNull(session, "session"));
    RETURN_IF_ERROR(NotNull(step, "step"));
    if (step_size != sizeof(PS_Step)) {
      return InvalidArgument("step_size is ", step_size, ", expected ", sizeof(PS_Step));
    }
    RETURN_IF_ERROR(CheckArray(fetched, step->num_fetches, "fetched"));
    ASSIGN_OR_RETURN(std::vector<Tensor> outputs, RunStep(*session, *step));
    std::vector<std::unique_ptr<PS_Tensor>> made;
    for (Tensor& output : outputs) {
      made.push_back(std::make_unique<PS_Tensor>(PS_Tensor{std::move(output)}));
    }
    for (size_t i = 0; i < made.size(); ++i) fetched[i] = made[i].release();
    return OkStatus();
  });
}

PS_Status* PS_CloseSession(PS_Session* session) {
  return Call([&]() -> Status {
    RETURN_IF_ERROR(NotNull(session, "session"));
    return session->session->Close();
  });
}

void PS_DeleteSession(PS_Session* session) {
  PS_DeleteStatus(Call([&] {
    delete session;
    return OkStatus();
  }));
}

PS_Status* PS_NewCancellation(PS_Cancellation** cancellation) {
  return Call([&]() -> Status {
    RETURN_IF_ERROR(NotNull(cancellation, "cancellation"));
    *cancellation = new PS_Cancellation;
    return OkStatus();
  });
}

void PS_Cancel(PS_Cancellation* cancellation) {
  PS_DeleteStatus(Call([&] {
    cancellation->cancellation.Cancel(Cancelled("the client has cancelled the step"));
    return OkStatus();
  }));
}

void PS_DeleteCancellation(PS_Cancellation* cancellation) { delete cancellation; }
