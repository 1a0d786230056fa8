// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes calls to a running server. The input is a sequence of calls in one session, whose graph
// adds "Placeholder" to itself in "Add". Each call is a byte for the method, two bytes for the
// length of the request, and the request. The target appends fields that a fuzzer could not guess
// (the session's handle and version, the server's incarnation) to the request; protobuf uses the
// last value of a field.
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/graph/builder.h"
#include "core/graph/graph_proto.h"
#include "core/wire/tensor_proto.h"
#include "distributed/testing/test_cluster.h"
#include "proto/penstock/worker.pb.h"
#include "proto/tensorflow/master.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace penstock {
namespace {

enum class Added { kNothing, kHandle, kHandleAndVersion, kHandleAndIncarnation, kIncarnation };
struct Method {
  const char* path;
  Added added;
};
constexpr Method kCreateSession = {"/tensorflow.MasterService/CreateSession", Added::kNothing};
constexpr Method kCloseSession = {"/tensorflow.MasterService/CloseSession", Added::kHandle};
constexpr Method kRunStep = {"/tensorflow.MasterService/RunStep", Added::kHandle};
constexpr Method kGetStatus = {"/penstock.wire.Worker/GetStatus", Added::kNothing};
constexpr Method kMethods[] = {
    kCreateSession,
    {"/tensorflow.MasterService/ExtendSession", Added::kHandleAndVersion},
    {"/tensorflow.MasterService/PartialRunSetup", Added::kHandle},
    kRunStep,
    kCloseSession,
    {"/tensorflow.MasterService/ListDevices", Added::kNothing},
    {"/tensorflow.MasterService/Reset", Added::kNothing},
    {"/tensorflow.MasterService/MakeCallable", Added::kHandle},
    {"/tensorflow.MasterService/RunCallable", Added::kHandle},
    {"/tensorflow.MasterService/ReleaseCallable", Added::kHandle},
    kGetStatus,
    {"/penstock.wire.Worker/CreateSession", Added::kHandleAndIncarnation},
    {"/penstock.wire.Worker/DeleteSession", Added::kHandleAndIncarnation},
    {"/penstock.wire.Worker/RegisterGraph", Added::kHandleAndIncarnation},
    {"/penstock.wire.Worker/DeregisterGraph", Added::kHandleAndIncarnation},
    {"/penstock.wire.Worker/AbortStep", Added::kIncarnation},
    {"/penstock.wire.Worker/Reset", Added::kIncarnation},
};

// The session's timeout. It ends steps that wait, so that they do not count as hangs.
constexpr int kStepMs = 200;
constexpr std::chrono::seconds kHang{30};

class RunningServer {
 public:
  RunningServer()
      : cluster_({{"worker", 1}}),
        stub_(
            grpc::CreateChannel(cluster_.target().substr(7), grpc::InsecureChannelCredentials())) {
    wire::GetStatusResponse status;
    CHECK(status.ParseFromString(Call(kGetStatus.path, "")), "no status");
    incarnation_ = status.self().incarnation();
    // Check once that a valid step runs; otherwise fuzzing would test nothing.
    OpenSession();
    tensorflow::RunStepRequest run;
    run.add_fetch("Add:0");
    tensorflow::NamedTensorProto* const feed = run.add_feed();
    feed->set_name("Placeholder:0");
    CHECK_OK(TensorToProto(Tensor::Scalar<float>(1), feed->mutable_tensor()));
    tensorflow::RunStepResponse result;
    CHECK(result.ParseFromString(Call(kRunStep, run.SerializeAsString())) &&
              result.tensor_size() == 1,
          "the step failed");
    Call(kCloseSession, "");
  }

  void Calls(string_view input) {
    OpenSession();
    while (input.size() >= 3) {
      const Method& method = kMethods[static_cast<uint8_t>(input[0]) % std::size(kMethods)];
      const size_t length = static_cast<uint8_t>(input[1]) | static_cast<uint8_t>(input[2]) << 8;
      input.remove_prefix(3);
      const string_view request = input.substr(0, length);
      input.remove_prefix(request.size());
      Call(method, std::string(request));
    }
    Call(kCloseSession, "");
  }

 private:
  void OpenSession() {
    GraphBuilder g;
    const Output x = CallIn(g, "Placeholder", {}, {{"dtype", DType::kFloat}});
    CallIn(g, "Add", {x, x}, {});
    CHECK_OK(g.status());
    tensorflow::CreateSessionRequest request;
    ExportGraph(g.graph(), request.mutable_graph_def());
    request.mutable_config()->set_operation_timeout_in_ms(kStepMs);
    CHECK(session_.ParseFromString(Call(kCreateSession.path, request.SerializeAsString())) &&
              !session_.session_handle().empty(),
          "no session");
  }

  std::string Call(const Method& method, std::string request) {
    switch (method.added) {
      case Added::kNothing:
        break;
      case Added::kHandle: {
        tensorflow::CloseSessionRequest added;
        added.set_session_handle(session_.session_handle());
        request += added.SerializeAsString();
        break;
      }
      case Added::kHandleAndVersion: {
        tensorflow::ExtendSessionRequest added;
        added.set_session_handle(session_.session_handle());
        added.set_current_graph_version(session_.graph_version());
        request += added.SerializeAsString();
        break;
      }
      case Added::kHandleAndIncarnation: {
        wire::DeleteSessionRequest added;
        added.set_session_handle(session_.session_handle());
        added.set_incarnation(incarnation_);
        request += added.SerializeAsString();
        break;
      }
      case Added::kIncarnation: {
        wire::ResetRequest added;
        added.set_incarnation(incarnation_);
        request += added.SerializeAsString();
      }
    }
    return Call(method.path, request);
  }

  std::string Call(const char* path, const std::string& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kHang);
    const grpc::Slice slice(request);
    const grpc::ByteBuffer sent(&slice, 1);
    grpc::ByteBuffer received;
    std::promise<grpc::Status> done;
    const auto begin = std::chrono::steady_clock::now();
    stub_.UnaryCall(&context, path, {}, &sent, &received,
                    [&done](grpc::Status status) { done.set_value(std::move(status)); });
    const grpc::Status status = done.get_future().get();
    CHECK(std::chrono::steady_clock::now() - begin < kHang, path, " hangs");
    CHECK(status.error_code() != grpc::StatusCode::UNIMPLEMENTED || !status.error_message().empty(),
          "no method ", path);
    std::string bytes;
    std::vector<grpc::Slice> slices;
    if (!received.Dump(&slices).ok()) return bytes;
    for (const grpc::Slice& part : slices) {
      bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
    }
    return bytes;
  }

  TestCluster cluster_;
  grpc::GenericStub stub_;
  uint64_t incarnation_ = 0;
  tensorflow::CreateSessionResponse session_;
};

}  // namespace
}  // namespace penstock

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const server = new penstock::RunningServer;
  server->Calls({reinterpret_cast<const char*>(data), size});
  return 0;
}
