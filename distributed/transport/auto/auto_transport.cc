// SPDX-License-Identifier: Apache-2.0
#include "distributed/transport/auto/auto_transport.h"

#include <cstdio>
#include <utility>

#include "core/base/check.h"
#include "distributed/transport/transport_factory.h"

namespace penstock {

AutoTransport::AutoTransport(std::vector<std::unique_ptr<Transport>> roads, Log log)
    : log_(std::move(log)), roads_(std::move(roads)) {
  CHECK(!roads_.empty());
}

AutoTransport::~AutoTransport() = default;

// Claims only the abilities that all of its transports have.
TransportCapabilities AutoTransport::capabilities() const {
  TransportCapabilities all = roads_.back()->capabilities();
  for (const auto& road : roads_) {
    const TransportCapabilities can = road->capabilities();
    CHECK(can.inline_bytes_max == all.inline_bytes_max, road->protocol(),
          " has another limit for small tensors than the other roads");
    all.zero_copy &= can.zero_copy;
    all.lands_in_device_memory &= can.lands_in_device_memory;
  }
  return all;
}

std::string AutoTransport::RoadFrom(const std::string& producer) {
  MutexLock lock(mu_);
  const auto way = ways_.find(producer);
  if (way == ways_.end() || way->second.road == nullptr) return "";
  return std::string(way->second.road->protocol());
}

Status AutoTransport::Serve(const TaskId& self, TaskSteps& steps) {
  steps_ = &steps;
  for (const auto& road : roads_) {
    const Status status = road->Serve(self, steps);
    if (!status.ok() && road == roads_.back()) return status;
    if (!status.ok()) {
      log_(StrCat("tensors do not go by ", road->protocol(), ": ", status.message()));
    }
    serves_.push_back(status);
  }
  return OkStatus();
}

void AutoTransport::Subscribe(const TaskId& producer, int64_t step_id) {
  Transport* road = nullptr;
  {
    MutexLock lock(mu_);
    Way& way = ways_[producer.name];
    if (way.producer != producer) way = {.producer = producer};
    road = way.road;
    if (road == nullptr) {
      way.waiting.insert(step_id);
      if (std::exchange(way.asking, true)) return;
    }
  }
  if (road != nullptr) return road->Subscribe(producer, step_id);
  FindRoad(producer, 0, "");
}

void AutoTransport::FindRoad(const TaskId& producer, size_t index, const std::string& reasons) {
  if (index + 1 == roads_.size()) return Take(producer, index, reasons);
  const auto reached = [this, producer, index, reasons](const Status& status) {
    if (status.ok()) return Take(producer, index, reasons);
    // The producer does not answer. The last transport will report that error to the waiting steps.
    // The next step tries all transports again.
    if (!absl::IsFailedPrecondition(status)) return TakeOnce(producer, roads_.size() - 1);
    FindRoad(producer, index + 1,
             StrCat(reasons, "; not by ", roads_[index]->protocol(), ": ", status.message()));
  };
  if (!serves_[index].ok()) return reached(serves_[index]);
  roads_[index]->Reach(producer, reached);
}

void AutoTransport::Take(const TaskId& producer, size_t index, const std::string& reasons) {
  {
    MutexLock lock(mu_);
    const auto way = ways_.find(producer.name);
    if (way != ways_.end() && way->second.producer == producer) {
      way->second.road = roads_[index].get();
    }
  }
  log_(StrCat("tensors from ", producer.ToString(), " come by ", roads_[index]->protocol(),
              reasons));
  TakeOnce(producer, index);
}

void AutoTransport::TakeOnce(const TaskId& producer, size_t index) {
  std::set<int64_t> steps;
  bool stopped = false;
  {
    MutexLock lock(mu_);
    stopped = stopped_;
    const auto way = ways_.find(producer.name);
    // The entry is for another incarnation.
    if (way == ways_.end() || way->second.producer != producer) return;
    steps.swap(way->second.waiting);
    way->second.asking = false;
  }
  for (const int64_t step_id : steps) {
    if (stopped) {
      steps_->Fail(step_id, Unavailable("lost the connection to ", producer.ToString(),
                                        ": this task is shutting down"));
    } else {
      roads_[index]->Subscribe(producer, step_id);
    }
  }
}

void AutoTransport::Unsubscribe(const TaskId& producer, int64_t step_id) {
  {
    MutexLock lock(mu_);
    const auto way = ways_.find(producer.name);
    if (way != ways_.end() && way->second.producer == producer) {
      way->second.waiting.erase(step_id);
    }
  }
  for (const auto& road : roads_) road->Unsubscribe(producer, step_id);
}

Poller* AutoTransport::poller() {
  for (const auto& road : roads_) {
    if (Poller* const poller = road->poller()) return poller;
  }
  return nullptr;
}

void AutoTransport::Stop() {
  {
    MutexLock lock(mu_);
    stopped_ = true;
  }
  for (const auto& road : roads_) road->Stop();
}

namespace {

void LogToStderr(const std::string& line) { std::fprintf(stderr, "penstock: %s\n", line.c_str()); }

// Makes the transports that need no more than the tasks' servers, fastest first.
StatusOr<std::unique_ptr<Transport>> Make(const TransportHost& host) {
  std::vector<std::unique_ptr<Transport>> roads;
  for (const char* const protocol : {"shm", "grpc"}) {
    ASSIGN_OR_RETURN(auto road, TransportFactory::Global().Make(protocol, host));
    roads.push_back(std::move(road));
  }
  return std::make_unique<AutoTransport>(std::move(roads),
                                         host.log == nullptr ? LogToStderr : host.log);
}

const bool added [[maybe_unused]] = TransportFactory::Global().Add("auto", Make);

}  // namespace

}  // namespace penstock
