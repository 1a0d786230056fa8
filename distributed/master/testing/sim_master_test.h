// SPDX-License-Identifier: Apache-2.0
//
// SimMasterTest: the fixture for tests of a master whose only task is its own, on a simulated
// clock. The graph of its sessions has two scalar placeholders and their identities:
// "Placeholder", "Identity", "Placeholder_1" and "Identity_1".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/builder.h"
#include "core/runtime/testing/sim_test.h"
#include "distributed/master/master.h"
#include "distributed/worker/testing/test_worker.h"

namespace penstock {

class SimMasterTest : public SimTest {
 protected:
  using Session = std::shared_ptr<MasterSession>;
  static constexpr int64_t kHourMs = 3'600'000;

  SimMasterTest() {
    for (int i = 0; i < 2; ++i) {
      const Output x =
          CallIn(g_, "Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape({})}});
      CallIn(g_, "Identity", {x});
    }
    CHECK_OK(g_.status());
  }

  // Runs `body` with a master that closes sessions which are idle for an hour.
  void Serving(const std::function<void()>& body) {
    Simulate([&] {
      worker_.emplace(env_, scheduler_, *timer_);
      Master::Options options{
          .worker = &**worker_,
          .services = {.env = &env_, .timer = timer_.get(), .threads = &scheduler_},
          .registry = &Registry::Global(),
          .idle_timeout_ms = kHourMs};
      CHECK_OK(options.cluster.AddTask("ps", 0, "here:1"));
      master_.emplace(std::move(options));
      body();
      master_.reset();
      worker_.reset();
    });
  }
  // Makes a session of a client at the address `client`; "": a client in this process.
  Session NewSession(const std::string& client, const SessionOptions& options = {}) {
    StatusOr<std::vector<SessionTask>> tasks = Internal("not found at once");
    master_->AwaitTasks(options, [&](auto found) { tasks = std::move(found); });
    CHECK_OK(tasks.status());
    auto session = master_->CreateSession(options, g_.graph().Clone(), *std::move(tasks), client);
    CHECK_OK(session.status());
    return *std::move(session);
  }
  int64_t running_steps() { return (*worker_)->steps().counts().running; }

  std::optional<TestWorker> worker_;
  std::optional<Master> master_;
  GraphBuilder g_;
};

}  // namespace penstock
