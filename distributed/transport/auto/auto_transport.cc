// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/auto/auto_transport.h"

#include <cstdio>
#include <utility>

#include "core/base/check.h"
#include "distributed/transport/transport_factory.h"

namespace penstock {

AutoTransport::AutoTransport(std::vector<std::unique_ptr<Transport>> transports, Log log)
    : log_(std::move(log)), transports_(std::move(transports)) {
  CHECK(!transports_.empty());
}

AutoTransport::~AutoTransport() = default;

// Returns the capabilities of the last transport, with zero_copy and in_order only if all
// transports have them.
TransportCapabilities AutoTransport::capabilities() const {
  TransportCapabilities all = transports_.back()->capabilities();
  for (const auto& transport : transports_) {
    const TransportCapabilities can = transport->capabilities();
    CHECK(can.inline_bytes_max == all.inline_bytes_max, transport->protocol(),
          " has another limit for small tensors than the other transports");
    all.zero_copy &= can.zero_copy;
    all.in_order &= can.in_order;
  }
  return all;
}

std::string AutoTransport::ProtocolFrom(const std::string& producer) {
  MutexLock lock(mu_);
  const auto choice = choices_.find(producer);
  if (choice == choices_.end() || choice->second.transport == nullptr) return "";
  return std::string(choice->second.transport->protocol());
}

Status AutoTransport::Serve(const TaskId& self, TaskSteps& steps) {
  steps_ = &steps;
  for (const auto& transport : transports_) {
    const Status status = transport->Serve(self, steps);
    if (!status.ok() && transport == transports_.back()) return status;
    if (!status.ok()) {
      log_(StrCat("tensors do not go by ", transport->protocol(), ": ", status.message()));
    }
    serve_results_.push_back(status);
  }
  return OkStatus();
}

void AutoTransport::Subscribe(const TaskId& producer, int64_t step_id) {
  Transport* transport = nullptr;
  {
    MutexLock lock(mu_);
    Choice& choice = choices_[producer.name];
    if (choice.producer != producer) choice = {.producer = producer};
    transport = choice.transport;
    if (transport == nullptr) {
      choice.waiting.insert(step_id);
      if (std::exchange(choice.asking, true)) return;
    }
  }
  if (transport != nullptr) return transport->Subscribe(producer, step_id);
  FindTransport(producer, 0, "");
}

void AutoTransport::FindTransport(const TaskId& producer, size_t index,
                                  const std::string& reasons) {
  if (index + 1 == transports_.size()) return Choose(producer, index, reasons);
  const auto reached = [this, producer, index, reasons](const Status& status) {
    if (status.ok()) return Choose(producer, index, reasons);
    // The producer does not answer. Makes the waiting steps use the last transport, which reports
    // that error to them. The next step tries all transports again.
    if (!absl::IsFailedPrecondition(status)) return ChooseOnce(producer, transports_.size() - 1);
    FindTransport(
        producer, index + 1,
        StrCat(reasons, "; not by ", transports_[index]->protocol(), ": ", status.message()));
  };
  if (!serve_results_[index].ok()) return reached(serve_results_[index]);
  transports_[index]->Reach(producer, reached);
}

void AutoTransport::Choose(const TaskId& producer, size_t index, const std::string& reasons) {
  {
    MutexLock lock(mu_);
    const auto choice = choices_.find(producer.name);
    if (choice != choices_.end() && choice->second.producer == producer) {
      choice->second.transport = transports_[index].get();
    }
  }
  log_(StrCat("tensors from ", producer.ToString(), " come by ", transports_[index]->protocol(),
              reasons));
  ChooseOnce(producer, index);
}

void AutoTransport::ChooseOnce(const TaskId& producer, size_t index) {
  std::set<int64_t> steps;
  bool stopped = false;
  {
    MutexLock lock(mu_);
    stopped = stopped_;
    const auto choice = choices_.find(producer.name);
    // The producer's entry was removed, or is now for another incarnation.
    if (choice == choices_.end() || choice->second.producer != producer) return;
    steps.swap(choice->second.waiting);
    choice->second.asking = false;
  }
  for (const int64_t step_id : steps) {
    if (stopped) {
      steps_->Fail(step_id, Unavailable("lost the connection to ", producer.ToString(),
                                        ": this task is shutting down"));
    } else {
      transports_[index]->Subscribe(producer, step_id);
    }
  }
}

void AutoTransport::Unsubscribe(const TaskId& producer, int64_t step_id) {
  {
    MutexLock lock(mu_);
    const auto choice = choices_.find(producer.name);
    if (choice != choices_.end() && choice->second.producer == producer) {
      choice->second.waiting.erase(step_id);
    }
  }
  for (const auto& transport : transports_) transport->Unsubscribe(producer, step_id);
}

Poller* AutoTransport::poller() {
  for (const auto& transport : transports_) {
    if (Poller* const poller = transport->poller()) return poller;
  }
  return nullptr;
}

void AutoTransport::Stop() {
  {
    MutexLock lock(mu_);
    stopped_ = true;
  }
  for (const auto& transport : transports_) transport->Stop();
}

namespace {

void LogToStderr(const std::string& line) { std::fprintf(stderr, "penstock: %s\n", line.c_str()); }

// Makes an AutoTransport of the transports that need no special network hardware, fastest first.
StatusOr<std::unique_ptr<Transport>> Make(const TransportHost& host) {
  std::vector<std::unique_ptr<Transport>> transports;
  for (const char* const protocol : {"shm", "grpc"}) {
    ASSIGN_OR_RETURN(auto transport, TransportFactory::Global().Make(protocol, host));
    transports.push_back(std::move(transport));
  }
  return std::make_unique<AutoTransport>(std::move(transports),
                                         host.log == nullptr ? LogToStderr : host.log);
}

const bool added [[maybe_unused]] = TransportFactory::Global().Add("auto", Make);

}  // namespace

}  // namespace penstock
