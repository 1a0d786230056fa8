// SPDX-License-Identifier: Apache-2.0
//
// For tests of servers: calls a method with arbitrary bytes as the request.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/base/check.h"

namespace penstock {

// Calls `method`, "/package.Service/Method", with `request`, and returns the status of the call,
// after at most 10 s. Stores the bytes of the answer in `*answer`, unless it is null.
inline grpc::Status CallBytes(const std::shared_ptr<grpc::Channel>& channel,
                              const std::string& method, const std::string& request = "",
                              std::string* answer = nullptr) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  grpc::CompletionQueue queue;
  const grpc::Slice slice(request);
  const auto call = stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(&slice, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer bytes;
  grpc::Status status;
  call->Finish(&bytes, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  CHECK(queue.Next(&tag, &ok), "a call has not ended");
  std::vector<grpc::Slice> slices;
  if (answer != nullptr && status.ok() && bytes.Dump(&slices).ok()) {
    answer->clear();
    for (const grpc::Slice& part : slices) {
      answer->append(reinterpret_cast<const char*>(part.begin()), part.size());
    }
  }
  return status;
}

}  // namespace penstock
