// SPDX-License-Identifier: Apache-2.0
//
// RefusedCalls: answers the calls of methods that no service of the task has, with an error that
// says what the task serves. TensorFlow's eager runtime and its servers call such methods.
//
// Threads: calls arrive on the loop's threads, which answer them at once.
#pragma once

#include <memory>
#include <string>

#include "core/base/status.h"

namespace grpc {
class AsyncGenericService;
class ServerBuilder;
class ServerCompletionQueue;
}  // namespace grpc

namespace penstock {

class CompletionLoop;

// Returns the error for calls of `method`, such as "/tensorflow.eager.EagerService/CreateContext":
// Unimplemented, so that no client tries again.
Status RefusalOf(const std::string& method);

class RefusedCalls {
 public:
  RefusedCalls();
  ~RefusedCalls();

  void Register(grpc::ServerBuilder* builder);
  // Begins to take calls. REQUIRES that the server runs. The loop polls `queue`.
  void Listen(CompletionLoop& loop, grpc::ServerCompletionQueue& queue);

 private:
  const std::unique_ptr<grpc::AsyncGenericService> service_;
};

}  // namespace penstock
