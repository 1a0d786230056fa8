// SPDX-License-Identifier: Apache-2.0
//
// ScriptedMaster: for tests of clients, a master on a loopback port that remembers its requests and
// gives the answers that the test sets, also answers that no real master gives.
#pragma once

#include <grpcpp/server_context.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "distributed/calls/testing/test_host.h"
#include "distributed/session/session.h"
#include "proto/tensorflow/master_service.grpc.pb.h"

namespace penstock {

// One method of the service. Answers with an empty message unless the test sets another
// answer. Thread-safe; answers run on gRPC's threads, several at a time, and may block.
template <class Request, class Response>
class ScriptedMethod {
 public:
  using Answer = std::function<grpc::Status(grpc::ServerContext&, const Request&, Response*)>;

  // Sets how calls are answered from now on.
  void Do(Answer answer) {
    MutexLock lock(mu_);
    answer_ = std::move(answer);
  }
  void Say(const Response& response) {
    Do([response](grpc::ServerContext&, const Request&, Response* answer) {
      *answer = response;
      return grpc::Status::OK;
    });
  }
  void Fail(grpc::StatusCode code, const std::string& message) {
    Do([=](grpc::ServerContext&, const Request&, Response*) {
      return grpc::Status(code, message);
    });
  }

  int calls() const {
    MutexLock lock(mu_);
    return static_cast<int>(requests_.size());
  }
  // Returns a request by its position in order of arrival; -1 is the last.
  Request request(int index) const {
    MutexLock lock(mu_);
    return requests_.at(index < 0 ? requests_.size() + index : index);
  }

  grpc::Status Call(grpc::ServerContext& context, const Request& request, Response* response) {
    Answer answer;
    {
      MutexLock lock(mu_);
      requests_.push_back(request);
      answer = answer_;
    }
    return answer ? answer(context, request, response) : grpc::Status::OK;
  }

 private:
  mutable Mutex mu_;
  Answer answer_ ABSL_GUARDED_BY(mu_);
  std::vector<Request> requests_ ABSL_GUARDED_BY(mu_);
};

#define SCRIPTED_METHOD(Name, member)                                                       \
 public:                                                                                    \
  ScriptedMethod<tensorflow::Name##Request, tensorflow::Name##Response> member;             \
                                                                                            \
 private:                                                                                   \
  grpc::Status Name(grpc::ServerContext* context, const tensorflow::Name##Request* request, \
                    tensorflow::Name##Response* response) override {                        \
    return member.Call(*context, *request, response);                                       \
  }

class ScriptedMaster final : public tensorflow::MasterService::Service {
 public:
  static constexpr char kHandle[] = "session 1";
  static constexpr int64_t kVersion = 10;

  // Starts to serve. Answers CreateSession with kHandle and kVersion, until the test sets another
  // answer.
  ScriptedMaster() {
    tensorflow::CreateSessionResponse created;
    created.set_session_handle(kHandle);
    created.set_graph_version(kVersion);
    create.Say(created);
    host_.host().builder->RegisterService(this);
    host_.Start();
  }
  ~ScriptedMaster() override { Stop(); }

  std::string target() const { return StrCat("grpc://", host_.address()); }
  std::unique_ptr<SessionInterface> NewSession(const SessionOptions& options = {}) {
    auto session = NewRemoteSession(target(), options);
    CHECK_OK(session.status());
    return *std::move(session);
  }
  // Breaks all connections, and returns when the running answers have returned.
  void Stop() { host_.Stop(); }

  SCRIPTED_METHOD(CreateSession, create)
  SCRIPTED_METHOD(ExtendSession, extend)
  SCRIPTED_METHOD(PartialRunSetup, set_up_partial_run)
  SCRIPTED_METHOD(RunStep, run_step)
  SCRIPTED_METHOD(CloseSession, close)
  SCRIPTED_METHOD(ListDevices, list_devices)
  SCRIPTED_METHOD(Reset, reset)
  SCRIPTED_METHOD(MakeCallable, make_callable)
  SCRIPTED_METHOD(RunCallable, run_callable)
  SCRIPTED_METHOD(ReleaseCallable, release_callable)

 private:
  TestHost host_;
};

#undef SCRIPTED_METHOD

}  // namespace penstock
