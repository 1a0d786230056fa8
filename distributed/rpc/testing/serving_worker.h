// SPDX-License-Identifier: Apache-2.0
//
// ServingWorker: for tests, a TestWorker that serves calls on a loopback port.
#pragma once

#include <future>
#include <string>

#include "core/base/env.h"
#include "core/base/thread_pool.h"
#include "distributed/calls/testing/test_host.h"
#include "distributed/rpc/worker_service.h"
#include "distributed/worker/testing/test_worker.h"

namespace penstock {

class ServingWorker {
 public:
  ServingWorker() {
    host_.host().builder->RegisterService(&service_.service());
    host_.Start();
    service_.Use({.worker = &*worker_,
                  .threads = &threads_,
                  .env = &Env::Real(),
                  .registry = &Registry::Global(),
                  .uploads = &uploads_,
                  .shutdown = [this](const std::string& reason) { shutdown_.set_value(reason); }});
    service_.Listen(host_.loop(), *host_.host().queue);
  }
  ~ServingWorker() { Stop(); }

  TestWorker& worker() { return worker_; }
  TestHost& host() { return host_; }
  Scheduler& threads() { return threads_; }
  GraphUploads& uploads() { return uploads_; }
  // Waits until a call asks for the end of the process; returns the reason.
  std::string AwaitShutdown() { return shutdown_.get_future().get(); }
  void Stop() {
    worker_->steps().AbortAll(Cancelled("the worker has been stopped"));
    host_.Stop();
    // An aborted step ends on the pool, so it may still run.
    while (worker_->steps().counts().running > 0) Env::Real().SleepForNanos(1'000'000);
  }

 private:
  ThreadPool threads_{"test", 2};
  TestWorker worker_{Env::Real(), threads_, DeadlineTimer::Real()};
  std::promise<std::string> shutdown_;
  GraphUploads uploads_{Env::Real()};
  WorkerService service_;
  TestHost host_;
};

}  // namespace penstock
