// SPDX-License-Identifier: Apache-2.0
//
// The calls of MasterService that run steps. They hold no thread while they wait for
// a step.
#include <algorithm>
#include <string>
#include <utility>

#include "core/base/timeout.h"
#include "core/graph/graph_proto.h"
#include "distributed/calls/status_proto.h"
#include "distributed/rpc/master_service.h"
#include "distributed/rpc/options_without_effect.h"
#include "distributed/rpc/protocol.h"
#include "distributed/rpc/tensor_message.h"
#include "distributed/rpc/value_proto.h"
#include "proto/tensorflow/config.pb.h"

namespace penstock {
namespace {

// Requests of more bytes, and answers with more fetches, are handled on other threads, so that the
// polling thread spends only microseconds on each. Reading feeds takes about 1 us per 10 KB.
// Fetches of plain bytes are written without a copy.
constexpr size_t kRequestBytesInline = size_t{64} << 10;
constexpr size_t kFetchesInline = 64;

constexpr TensorField kFeed = {tensorflow::RunStepRequest::kFeedFieldNumber, /*named=*/true,
                               "feed"};
constexpr TensorField kCallableFeed = {tensorflow::RunCallableRequest::kFeedFieldNumber,
                                       /*named=*/false, "feed"};

RunOptions OptionsOf(const tensorflow::RunOptions& options) {
  return {.timeout_ms = LimitTimeout(options.timeout_in_ms()),
          .trace = options.trace_level() != tensorflow::RunOptions::NO_TRACE,
          .partition_graphs = options.output_partition_graphs()};
}

// A step for which a client waits.
template <class Request>
struct ClientStep {
  Request request;  // the request without its tensors
  std::shared_ptr<MasterSession> session;
  MasterSession::AsyncRun run;
  Cancellation cancellation;
  ClientLimits::Permit permit;  // held until the step has ended
};

void AddMetadata(const MasterSession::AsyncRun& run, tensorflow::RunMetadata* metadata) {
  if (run.options.trace) ToProto(run.metadata.step_stats, metadata->mutable_step_stats());
  if (!run.metadata.cost_graph.empty()) {
    ToProto(run.metadata.cost_graph, metadata->mutable_cost_graph());
  }
  for (const auto& [device, graph] : run.metadata.partition_graphs) {
    ExportGraph(graph, metadata->add_partition_graphs());
  }
}

StatusOr<grpc::ByteBuffer> MessageOf(const tensorflow::RunStepRequest& request,
                                     const MasterSession::AsyncRun& run) {
  TensorMessageWriter writer;
  for (int i = 0; i < request.fetch_size(); ++i) {
    writer.AddNamedTensor(tensorflow::RunStepResponse::kTensorFieldNumber, request.fetch(i),
                          run.outputs[i]);
  }
  tensorflow::RunStepResponse rest;
  AddMetadata(run, rest.mutable_metadata());
  writer.Add(rest);
  return writer.Take();
}

StatusOr<grpc::ByteBuffer> MessageOf(const MasterSession::AsyncRun& run) {
  TensorMessageWriter writer;
  for (const Tensor& output : run.outputs) {
    writer.AddTensor(tensorflow::RunCallableResponse::kFetchFieldNumber, /*name=*/"", output);
  }
  tensorflow::RunCallableResponse rest;
  AddMetadata(run, rest.mutable_metadata());
  writer.Add(rest);
  return writer.Take();
}

bool AnswersQuickly(const MasterSession::AsyncRun& run) {
  const auto plain = [](const Tensor& t) { return IsPlain(t.dtype()); };
  return run.outputs.size() <= kFetchesInline &&
         std::all_of(run.outputs.begin(), run.outputs.end(), plain) && !run.options.trace &&
         run.metadata.partition_graphs.empty() && run.metadata.cost_graph.empty();
}

// Ends the call with the message of `answer`, or with its error: in the body of a RunStepResponse
// if `errors_in_body`, else as the status of the call.
template <class Call>
void Finish(Call& call, StatusOr<grpc::ByteBuffer> answer, bool errors_in_body = false) {
  if (answer.ok()) {
    call.response() = *std::move(answer);
    return call.Finish(OkStatus());
  }
  if (!errors_in_body) return call.Finish(answer.status());
  tensorflow::RunStepResponse error;
  error.set_status_code(static_cast<tensorflow::error::Code>(answer.status().code()));
  error.set_status_error_message(std::string(answer.status().message()));
  const std::string payloads = PayloadBytes(answer.status());
  if (!payloads.empty()) call.context().AddTrailingMetadata(kPayloadsKey, payloads);
  TensorMessageWriter writer;
  writer.Add(error);
  Finish(call, writer.Take());
}

}  // namespace

void MasterService::Begin(const StepCall& call, std::function<void()> begin) {
  if (call.request().Length() <= kRequestBytesInline) return begin();
  threads_->Schedule(std::move(begin));
}

void MasterService::Answer(const MasterSession::AsyncRun& run, std::function<void()> answer) {
  if (AnswersQuickly(run)) return answer();
  threads_->Schedule(std::move(answer));
}

void MasterService::RunStep(std::shared_ptr<StepCall> call) {
  Begin(*call, [this, call] {
    const auto step = std::make_shared<ClientStep<tensorflow::RunStepRequest>>();
    tensorflow::RunStepRequest& request = step->request;
    const Status read = ReadTensorMessage(&call->request(), kFeed, &request, &step->run.feeds);
    call->request().Clear();
    const bool in_body = request.store_errors_in_response_body();
    if (!read.ok()) return Finish(*call, read, in_body);
    auto session = FindSession(request.session_handle(), call->context());
    if (!session.ok()) return Finish(*call, session.status(), in_body);
    const Status first = recent_.Add(request.request_id(), "RunStep");
    if (!first.ok()) return Finish(*call, first, in_body);
    step->session = *std::move(session);
    const std::string& partial = request.partial_run_handle();
    if (partial.empty()) {  // an instalment uses the permit of its partial run
      auto permit = limits_->AddStep(request.session_handle());
      if (!permit.ok()) return Finish(*call, permit.status(), in_body);
      step->permit = *std::move(permit);
    }
    if (request.has_options()) {
      LogIgnoredOptionsOnce("a client's RunOptions set", OptionsWithoutEffect(request.options()));
    }
    step->run.options = OptionsOf(request.options());
    step->run.options.cancellation = &step->cancellation;
    step->run.fetches = {request.fetch().begin(), request.fetch().end()};
    step->run.targets = {request.target().begin(), request.target().end()};
    call->OnCancel([step] {
      step->cancellation.Cancel(Cancelled("the client does not wait for the step any more"));
    });
    Done done([this, call, step, in_body](const Status& status) {
      step->permit = nullptr;
      if (!status.ok()) return Finish(*call, status, in_body);
      Answer(step->run, [call, step, in_body] {
        Finish(*call, MessageOf(step->request, step->run), in_body);
      });
    });
    if (partial.empty()) return step->session->RunAsync(&step->run, std::move(done));
    if (request.target_size() > 0) {
      return std::move(done)(
          InvalidArgument("RunStep: the targets of a partial run belong to PartialRunSetup"));
    }
    const auto& metadata = call->context().client_metadata();
    if (metadata.find(kEndsPartialRunMetadata) != metadata.end()) {
      step->cancellation.Cancel(Cancelled("the client has cancelled the partial run"));
    }
    step->session->RunPartialAsync(partial, &step->run, std::move(done));
  });
}

void MasterService::SetUpPartialRun(std::shared_ptr<PartialSetupCall> call) {
  const tensorflow::PartialRunSetupRequest& request = call->request();
  auto session = FindSession(request.session_handle(), call->context());
  if (!session.ok()) return call->Finish(session.status());
  const Status first = recent_.Add(request.request_id(), "PartialRunSetup");
  if (!first.ok()) return call->Finish(first);
  auto permit = limits_->AddStep(request.session_handle());
  if (!permit.ok()) return call->Finish(permit.status());
  (*session)->SetUpPartialRunAsync(
      {.feeds = {request.feed().begin(), request.feed().end()},
       .fetches = {request.fetch().begin(), request.fetch().end()},
       .targets = {request.target().begin(), request.target().end()}},
      [call, session = *session](StatusOr<std::string> handle) {
        if (!handle.ok()) return call->Finish(handle.status());
        call->response().set_partial_run_handle(*handle);
        // A client that does not get the handle cannot end the run.
        call->Finish(OkStatus(), [session, handle = *handle] {
          session->EndPartialRun(
              handle, Cancelled("the client went away before it got the partial run's handle"));
        });
      },
      *std::move(permit));
}

Status MasterService::MakeCallable(const tensorflow::MakeCallableRequest& request,
                                   const grpc::ServerContext& context,
                                   tensorflow::MakeCallableResponse* response) {
  ASSIGN_OR_RETURN(const auto session, FindSession(request.session_handle(), context));
  RETURN_IF_ERROR(recent_.Add(request.request_id(), "MakeCallable"));
  const tensorflow::CallableOptions& options = request.options();
  if (options.tensor_connection_size() > 0) {
    return Unimplemented("MakeCallable: tensor_connection is not supported");
  }
  LogIgnoredOptionsOnce("a client's CallableOptions set", OptionsWithoutEffect(options));
  const CallableSpec spec{.feeds = {options.feed().begin(), options.feed().end()},
                          .fetches = {options.fetch().begin(), options.fetch().end()},
                          .targets = {options.target().begin(), options.target().end()}};
  ASSIGN_OR_RETURN(const int64_t callable,
                   session->MakeCallable(spec, OptionsOf(options.run_options())));
  response->set_handle(callable);
  return OkStatus();
}

Status MasterService::ReleaseCallable(const tensorflow::ReleaseCallableRequest& request,
                                      const grpc::ServerContext& context) {
  ASSIGN_OR_RETURN(const auto session, FindSession(request.session_handle(), context));
  return session->ReleaseCallable(request.handle());
}

void MasterService::RunCallable(std::shared_ptr<StepCall> call) {
  Begin(*call, [this, call] {
    const auto step = std::make_shared<ClientStep<tensorflow::RunCallableRequest>>();
    tensorflow::RunCallableRequest& request = step->request;
    const Status read =
        ReadTensorMessage(&call->request(), kCallableFeed, &request, &step->run.feeds);
    call->request().Clear();
    if (!read.ok()) return Finish(*call, read);
    auto session = FindSession(request.session_handle(), call->context());
    if (!session.ok()) return Finish(*call, session.status());
    const Status first = recent_.Add(request.request_id(), "RunCallable");
    if (!first.ok()) return Finish(*call, first);
    step->session = *std::move(session);
    auto permit = limits_->AddStep(request.session_handle());
    if (!permit.ok()) return Finish(*call, permit.status());
    step->permit = *std::move(permit);
    step->run.options.cancellation = &step->cancellation;
    call->OnCancel([step] {
      step->cancellation.Cancel(Cancelled("the client does not wait for the step any more"));
    });
    step->session->RunCallableAsync(
        request.handle(), &step->run, Done([this, call, step](const Status& status) {
          step->permit = nullptr;
          if (!status.ok()) return Finish(*call, status);
          Answer(step->run, [call, step] { Finish(*call, MessageOf(step->run)); });
        }));
  });
}

}  // namespace penstock
