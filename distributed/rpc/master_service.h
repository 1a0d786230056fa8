// SPDX-License-Identifier: Apache-2.0
//
// MasterService: TensorFlow's public session protocol (/tensorflow.MasterService/...) for a Master.
// Any number of calls may wait in it, because a waiting call holds no thread.
//
// Threads: after Listen, calls arrive on any thread. Locks: logged_mu_, permits_mu_ and that of
// RecentRequests; none is taken while another is held.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/base/mutex.h"
#include "distributed/calls/completion_loop.h"
#include "distributed/calls/unary_call.h"
#include "distributed/master/master.h"
#include "distributed/rpc/call_threads.h"
#include "distributed/rpc/client_limits.h"
#include "distributed/rpc/graph_upload.h"
#include "proto/tensorflow/master_service.grpc.pb.h"

namespace penstock {

// RecentRequests: the ids of the last calls. A client repeats a call whose answer was lost; the
// repetition must not be executed. Thread-safe.
class RecentRequests {
 public:
  static constexpr size_t kRemembered = 10'000;
  // Remembers `id`. Aborted if it is one of the last kRemembered ids; `what` names the call in the
  // error. 0 means that the call has no id, and is always OK.
  Status Add(int64_t id, string_view what);

 private:
  Mutex mu_;
  absl::flat_hash_set<int64_t> ids_ ABSL_GUARDED_BY(mu_);
  std::deque<int64_t> order_ ABSL_GUARDED_BY(mu_);
};

class MasterService {
 public:
  // Returns the service, to be registered with the server.
  grpc::Service& service() { return service_; }
  // Sets the defaults for the configurations of clients: a ConfigProto in text form. Must be
  // called before Listen.
  Status SetDefaultConfig(const std::string& text);
  // Sets the limits for clients in other processes. Must be called before Listen.
  void SetLimits(const ClientLimits::Options& limits) { limits_.emplace(limits); }
  // Begins to take calls. REQUIRES: the server runs. All arguments are borrowed; the loop polls
  // `queue`; `uploads` collects graphs that come in parts.
  void Listen(Master& master, GraphUploads& uploads, Scheduler& threads, CompletionLoop& loop,
              grpc::ServerCompletionQueue& queue);
  // Waits until no call has a thread of its own any more.
  void WaitForCalls() { call_threads_.Wait(); }

 private:
  // Messages with tensors or graphs are received and sent as bytes: see tensor_message.h.
  template <class Base>
  using RawSteps = tensorflow::MasterService::WithRawMethod_RunStep<
      tensorflow::MasterService::WithRawMethod_RunCallable<Base>>;
  template <class Base>
  using RawGraphs = tensorflow::MasterService::WithRawMethod_CreateSession<
      tensorflow::MasterService::WithRawMethod_ExtendSession<Base>>;
  using AsyncService = RawSteps<RawGraphs<tensorflow::MasterService::AsyncService>>;
  template <class Request, class Response>
  using Call = UnaryCall<AsyncService, Request, Response>;
  using StepCall = Call<grpc::ByteBuffer, grpc::ByteBuffer>;
  using PartialSetupCall =
      Call<tensorflow::PartialRunSetupRequest, tensorflow::PartialRunSetupResponse>;

  using GraphCall = Call<grpc::ByteBuffer, grpc::ByteBuffer>;
  struct NewSession;

  void AcceptCalls(CompletionLoop& loop, grpc::ServerCompletionQueue& queue);
  // Creates a session in three phases. The first and the last phase run on a thread. In the second
  // phase the call waits for the session's tasks and holds no thread.
  void CreateSession(std::shared_ptr<GraphCall> call);
  Status ReadNewSession(NewSession* wanted);
  // Keeps the client's permit (ClientLimits) as long as the new session lives.
  void KeepPermit(const std::shared_ptr<MasterSession>& session, ClientLimits::Permit permit);
  void DropUnusedPermits();
  void MakeSession(std::shared_ptr<NewSession> wanted, std::vector<SessionTask> tasks);
  // Returns the session that a call names, and notes the client's address.
  StatusOr<std::shared_ptr<MasterSession>> FindSession(const std::string& handle,
                                                       const grpc::ServerContext& context);
  // Parses and clears the call's request, extends the session, and sets the response.
  Status ExtendSession(GraphCall* call);
  // Adds the nodes of the request to the session's graph, or a part of a graph to its upload.
  // Changes the request.
  Status ExtendGraph(tensorflow::ExtendSessionRequest* request, const grpc::ServerContext& context,
                     tensorflow::ExtendSessionResponse* response);
  // Adds a part of a graph, which this function changes, to its upload. Returns the constants if it
  // was the last part, else null. Aborted if the client expects another version of the session's
  // graph.
  StatusOr<std::unique_ptr<ConstantPieces>> AddPart(const MasterSession& session,
                                                    tensorflow::ExtendSessionRequest* request);
  Status Reset(const tensorflow::ResetRequest& request);
  Status MakeCallable(const tensorflow::MakeCallableRequest& request,
                      const grpc::ServerContext& context,
                      tensorflow::MakeCallableResponse* response);
  Status ReleaseCallable(const tensorflow::ReleaseCallableRequest& request,
                         const grpc::ServerContext& context);
  Status ListDevices(const tensorflow::ListDevicesRequest& request,
                     const grpc::ServerContext& context, tensorflow::ListDevicesResponse* response);
  void SetUpPartialRun(std::shared_ptr<PartialSetupCall> call);
  void RunStep(std::shared_ptr<StepCall> call);
  void RunCallable(std::shared_ptr<StepCall> call);
  // Reading and writing long messages takes too long for a polling thread: these functions run that
  // work on other threads.
  void Begin(const StepCall& call, std::function<void()> begin);
  void Answer(const MasterSession::AsyncRun& run, std::function<void()> answer);

  // Logs in one line that options have no effect. `where` says where they were set.
  void LogIgnoredOptions(const std::string& where, const std::vector<std::string>& options) const;
  // Does the same as LogIgnoredOptions, for options that clients send with each step, but names
  // each option only once.
  void LogIgnoredOptionsOnce(const std::string& where, std::vector<std::string> options);

  tensorflow::ConfigProto default_config_;
  Mutex logged_mu_;
  std::set<std::string> logged_
      ABSL_GUARDED_BY(logged_mu_);  // options that LogIgnoredOptionsOnce has named
  Master* master_ = nullptr;
  GraphUploads* uploads_ = nullptr;
  Scheduler* threads_ = nullptr;
  AsyncService service_;
  RecentRequests recent_;
  std::optional<ClientLimits> limits_{ClientLimits::Options()};
  struct HeldPermit {
    std::weak_ptr<MasterSession> session;
    ClientLimits::Permit permit;
  };
  Mutex permits_mu_;
  std::vector<HeldPermit> permits_ ABSL_GUARDED_BY(permits_mu_);
  CallThreads call_threads_;
};

}  // namespace penstock
