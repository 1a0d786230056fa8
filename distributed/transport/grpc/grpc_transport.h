// SPDX-License-Identifier: Apache-2.0
//
// GrpcTransport: the consumer's end of the Exchange streams: one per producer, opened when it is
// first needed, and again after it was lost.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "distributed/rpc/calls/channel.h"
#include "distributed/rpc/calls/completion_loop.h"
#include "distributed/transport/transport.h"
#include "distributed/worker/step_table.h"

namespace penstock {

class ExchangeStream;

class GrpcTransport final : public Transport {
 public:
  // All borrowed. What arrives goes to `steps`. Destroy it when the loop has been stopped.
  GrpcTransport(const TaskId& self, StepTable& steps, Channels& channels, CompletionLoop& loop);
  ~GrpcTransport() override;

  void Subscribe(const TaskId& producer, int64_t step_id) override;
  void Unsubscribe(const TaskId& producer, int64_t step_id) override;

 private:
  friend class ExchangeStream;
  void Forget(const ExchangeStream* stream);

  const TaskId self_;
  StepTable& steps_;
  Channels& channels_;
  CompletionLoop& loop_;
  Mutex mu_;  // locked before a stream's
  std::map<std::string, std::shared_ptr<ExchangeStream>> streams_
      ABSL_GUARDED_BY(mu_);  // by task name
};

}  // namespace penstock
