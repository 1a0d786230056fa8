// SPDX-License-Identifier: Apache-2.0
//
// ReplicaClient: calls from a replica to its other replica, or to the witness.
//
// Calls never block: each ends by calling its continuation, exactly once, on any thread,
// within its timeout. Unavailable if the process cannot be reached. Thread-safe.
#pragma once

#include <cstdint>

#include "absl/functional/any_invocable.h"
#include "core/base/status.h"
#include "proto/penstock/replica.pb.h"

namespace penstock {

class ReplicaClient {
 public:
  template <class Response>
  using Answer = absl::AnyInvocable<void(StatusOr<Response>) &&>;

  virtual ~ReplicaClient() = default;
  virtual void Greet(const wire::GreetRequest& request, int64_t timeout_ms,
                     Answer<wire::GreetResponse> answer) = 0;
  virtual void Follow(const wire::FollowRequest& request, int64_t timeout_ms,
                      Answer<wire::FollowResponse> answer) = 0;
  virtual void Push(const wire::PushRequest& request, int64_t timeout_ms,
                    Answer<wire::PushResponse> answer) = 0;
  virtual void Claim(const wire::ClaimRequest& request, int64_t timeout_ms,
                     Answer<wire::ClaimResponse> answer) = 0;
};

}  // namespace penstock
