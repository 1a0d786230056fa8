// SPDX-License-Identifier: Apache-2.0
//
// The calls of MasterService that run steps: they wait for the step without a thread.
#include <algorithm>
#include <string>
#include <utility>

#include "core/graph/graph_proto.h"
#include "distributed/master_service.h"
#include "distributed/value_proto.h"
#include "proto/tensorflow/config.pb.h"

namespace penstock {
namespace {

// Reading feeds takes about 1 us per 10 KB: longer requests leave the thread that polls.
constexpr size_t kRequestBytesInline = size_t{64} << 10;
constexpr size_t kResponseBytesMax = (size_t{1} << 31) - 1;  // protobuf's

RunOptions OptionsOf(const tensorflow::RunOptions& options) {
  return {.timeout_ms = std::max<int64_t>(0, options.timeout_in_ms()),
          .trace = options.trace_level() != tensorflow::RunOptions::NO_TRACE,
          .partition_graphs = options.output_partition_graphs()};
}

// A step that a client waits for.
struct ClientStep {
  std::shared_ptr<MasterSession> session;
  MasterSession::AsyncRun run;
  Cancellation cancellation;
};

void AddMetadata(const MasterSession::AsyncRun& run, tensorflow::RunMetadata* metadata) {
  if (run.options.trace) ToProto(run.metadata.step_stats, metadata->mutable_step_stats());
  for (const auto& [device, graph] : run.metadata.partition_graphs) {
    ExportGraph(graph, metadata->add_partition_graphs());
  }
}

template <class Message>
Status CheckSize(const Message& response) {
  if (response.ByteSizeLong() <= kResponseBytesMax) return OkStatus();
  return ResourceExhausted("the fetched tensors are larger than 2 GiB together");
}

// Ends the step when the client does not wait any more.
template <class Call>
void CancelWith(Call& call, const std::shared_ptr<ClientStep>& step) {
  step->run.options.cancellation = &step->cancellation;
  call.OnCancel([step] {
    step->cancellation.Cancel(Cancelled("the client does not wait for the step any more"));
  });
}

Status ReadFeeds(const tensorflow::RunStepRequest& request, Feeds* feeds) {
  for (const tensorflow::NamedTensorProto& feed : request.feed()) {
    auto value = TensorFromProto(feed.tensor());
    if (!value.ok()) return Annotate(value.status(), StrCat("feed '", feed.name(), "'"));
    feeds->emplace_back(feed.name(), *std::move(value));
  }
  return OkStatus();
}

Status Answer(const tensorflow::RunStepRequest& request, const MasterSession::AsyncRun& run,
              tensorflow::RunStepResponse* response) {
  for (int i = 0; i < request.fetch_size(); ++i) {
    tensorflow::NamedTensorProto* const tensor = response->add_tensor();
    tensor->set_name(request.fetch(i));
    TensorToProto(run.outputs[i], tensor->mutable_tensor());
  }
  AddMetadata(run, response->mutable_metadata());
  return CheckSize(*response);
}

}  // namespace

void MasterService::RunStep(std::shared_ptr<RunStepCall> call) {
  const auto finish = [call](Status status) {
    if (!status.ok()) call->response().Clear();
    if (!status.ok() && call->request().store_errors_in_response_body()) {
      call->response().set_status_code(static_cast<tensorflow::error::Code>(status.code()));
      call->response().set_status_error_message(std::string(status.message()));
      status = OkStatus();
    }
    call->Finish(status);
  };
  const auto begin = [this, call, finish] {
    const tensorflow::RunStepRequest& request = call->request();
    auto session = master_->FindSession(request.session_handle());
    if (!session.ok()) return finish(session.status());
    if (!request.partial_run_handle().empty()) {
      return finish(Unimplemented("RunStep: partial runs are not supported"));
    }
    const Status first = recent_.Add(request.request_id(), "RunStep");
    if (!first.ok()) return finish(first);
    const auto step = std::make_shared<ClientStep>();
    step->session = *std::move(session);
    step->run.options = OptionsOf(request.options());
    step->run.fetches = {request.fetch().begin(), request.fetch().end()};
    step->run.targets = {request.target().begin(), request.target().end()};
    const Status read = ReadFeeds(request, &step->run.feeds);
    if (!read.ok()) return finish(read);
    CancelWith(*call, step);
    step->session->RunAsync(&step->run, Done([call, step, finish](Status status) {
      if (status.ok()) status = Answer(call->request(), step->run, &call->response());
      finish(std::move(status));
    }));
  };
  if (call->request().ByteSizeLong() <= kRequestBytesInline) return begin();
  threads_->Schedule(begin);
}

Status MasterService::MakeCallable(const tensorflow::MakeCallableRequest& request,
                                   tensorflow::MakeCallableResponse* response) {
  ASSIGN_OR_RETURN(const auto session, master_->FindSession(request.session_handle()));
  RETURN_IF_ERROR(recent_.Add(request.request_id(), "MakeCallable"));
  const tensorflow::CallableOptions& options = request.options();
  if (options.tensor_connection_size() > 0) {
    return Unimplemented("MakeCallable: tensor_connection is not supported");
  }
  ASSIGN_OR_RETURN(
      const int64_t callable,
      session->MakeCallable({.feeds = {options.feed().begin(), options.feed().end()},
                             .fetches = {options.fetch().begin(), options.fetch().end()},
                             .targets = {options.target().begin(), options.target().end()}},
                            OptionsOf(options.run_options())));
  response->set_handle(callable);
  return OkStatus();
}

Status MasterService::ReleaseCallable(const tensorflow::ReleaseCallableRequest& request) {
  ASSIGN_OR_RETURN(const auto session, master_->FindSession(request.session_handle()));
  return session->ReleaseCallable(request.handle());
}

void MasterService::RunCallable(std::shared_ptr<RunCallableCall> call) {
  const auto begin = [this, call] {
    const tensorflow::RunCallableRequest& request = call->request();
    auto session = master_->FindSession(request.session_handle());
    if (!session.ok()) return call->Finish(session.status());
    const Status first = recent_.Add(request.request_id(), "RunCallable");
    if (!first.ok()) return call->Finish(first);
    const auto step = std::make_shared<ClientStep>();
    step->session = *std::move(session);
    for (const tensorflow::TensorProto& feed : request.feed()) {
      auto value = TensorFromProto(feed);
      if (!value.ok()) return call->Finish(value.status());
      step->run.feeds.emplace_back("", *std::move(value));
    }
    CancelWith(*call, step);
    step->session->RunCallableAsync(request.handle(), &step->run, Done([call, step](Status status) {
                                      if (status.ok()) {
                                        for (const Tensor& output : step->run.outputs) {
                                          TensorToProto(output, call->response().add_fetch());
                                        }
                                        AddMetadata(step->run, call->response().mutable_metadata());
                                        status = CheckSize(call->response());
                                      }
                                      call->Finish(status);
                                    }));
  };
  if (call->request().ByteSizeLong() <= kRequestBytesInline) return begin();
  threads_->Schedule(begin);
}

}  // namespace penstock
