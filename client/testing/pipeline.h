// SPDX-License-Identifier: Apache-2.0
//
// Pipeline: for tests, a running input pipeline.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/coordinator.h"
#include "client/program.h"
#include "client/queue_runner.h"
#include "client/session.h"
#include "core/base/check.h"
#include "core/op/gradient.h"
#include "gtest/gtest.h"

namespace penstock::client {

class Pipeline {
 public:
  Pipeline() : runners_(program_) {}
  // Destroys the coordinator, and so ends its threads, before the program is destroyed.
  ~Pipeline() { coordinator_ = nullptr; }

  Program& program() { return program_; }
  QueueRunners& runners() { return runners_; }
  Coordinator& coordinator() { return *coordinator_; }
  Session& session() { return *session_; }

  void Start() {
    auto session = Session::New(program_);
    CHECK_OK(session.status());
    session_ = *std::move(session);
    if (!program_.locals().empty()) {
      const Output init = program_.Initialize(program_.locals());
      CHECK_OK(session_->Execute(init));
    }
    coordinator_ = std::make_unique<Coordinator>();
    runners_.Start(*session_, *coordinator_);
  }
  StatusOr<std::vector<Tensor>> Next(const Outputs& fetches) {
    return session_->Run({}, {fetches.begin(), fetches.end()}, {}, {.timeout_ms = 20'000});
  }
  // Returns all elements up to the end of the input, as text. Checks that no error ended the input.
  std::vector<std::string> All(const Outputs& fetches) {
    std::vector<std::string> all;
    while (!coordinator_->should_stop()) {
      const auto tensors = Next(fetches);
      if (!tensors.ok()) {
        coordinator_->RequestStop(tensors.status());
        break;
      }
      std::string text;
      for (const Tensor& t : *tensors) StrAppend(&text, text.empty() ? "" : "; ", t.ToString());
      all.push_back(text);
    }
    const Status end = coordinator_->Join();
    EXPECT_TRUE(end.ok()) << end;
    return all;
  }

 private:
  Program program_;
  QueueRunners runners_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Coordinator> coordinator_;
};

inline Output Take(Output queue, DType type) {
  return Call("QueueDequeueV2", {queue}, {{"component_types", std::vector<DType>{type}}});
}

}  // namespace penstock::client
