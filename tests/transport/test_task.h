// SPDX-License-Identifier: Apache-2.0
//
// TestTask: a task that consists of a transport, and of steps that record the tensors they receive.
#pragma once

#include <memory>
#include <string>

#include "core/base/env.h"
#include "distributed/calls/testing/test_host.h"
#include "distributed/transport/testing/recording_steps.h"
#include "distributed/transport/transport_factory.h"

namespace penstock {

class TestTask {
 public:
  // Serves at `address`; port 0 means any free port.
  TestTask(const std::string& protocol, const std::string& job,
           const std::string& address = "127.0.0.1:0")
      : host_(address) {
    auto made = TransportFactory::Global().Make(protocol, {.grpc = &host_.host()});
    CHECK_OK(made.status());
    transport_ = *std::move(made);
    host_.Start();
    id_ = {.name = StrCat("/job:", job, "/replica:0/task:0"),
           .address = host_.address(),
           .incarnation = Env::Real().RandomU64() | 1};
    CHECK_OK(transport_->Serve(id_, steps_));
  }
  ~TestTask() { Stop(); }
  void Stop() {
    transport_->Stop();
    host_.Stop();
  }

  const TaskId& id() const { return id_; }
  Transport& transport() { return *transport_; }
  RecordingSteps& steps() { return steps_; }

 private:
  TaskId id_;
  RecordingSteps steps_;
  // must outlive the server, which may use the transport's service
  std::unique_ptr<Transport> transport_;
  TestHost host_;
};

}  // namespace penstock
