// SPDX-License-Identifier: Apache-2.0
//
// StreamTable: the streams of a consumer, one per producer. A stream is opened when it is first
// needed; after it was lost, the next use opens a new one.
//
// Thread-safe. `Stream` has producer, WhenOpen, Subscribe and Unsubscribe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/status.h"
#include "distributed/transport/transport.h"

namespace penstock {

template <class Stream>
class StreamTable {
 public:
  using Made = StatusOr<std::shared_ptr<Stream>>;

  // `make` is called with the table's lock. `open` connects a new stream, and is called without
  // the lock.
  StreamTable(std::function<Made(const TaskId&)> make,
              std::function<void(const std::shared_ptr<Stream>&)> open)
      : make_(std::move(make)), open_(std::move(open)) {}

  // Implements Transport::Reach.
  void Reach(const TaskId& producer, Transport::Reached reached) {
    bool is_new = false;
    Made stream = nullptr;
    {
      MutexLock lock(mu_);
      stream = Find(producer, &is_new);
    }
    if (!stream.ok()) return std::move(reached)(FailedPrecondition(stream.status().message()));
    (*stream)->WhenOpen(std::move(reached));
    if (is_new) open_(*stream);
  }
  // Subscribes to a step. Returns an error if no stream could be made.
  Status Subscribe(const TaskId& producer, int64_t step_id) {
    bool is_new = false;
    Made stream = nullptr;
    {
      MutexLock lock(mu_);
      stream = Find(producer, &is_new);
      if (stream.ok() &&
          !(*stream)->Subscribe(step_id)) {  // try again: the stream has just been lost
        streams_.erase(producer.name);
        stream = Find(producer, &is_new);
        if (stream.ok()) (*stream)->Subscribe(step_id);
      }
    }
    RETURN_IF_ERROR(stream.status());
    if (is_new) open_(*stream);
    return OkStatus();
  }
  void Unsubscribe(const TaskId& producer, int64_t step_id) {
    MutexLock lock(mu_);
    const auto found = streams_.find(producer.name);
    if (found != streams_.end()) found->second->Unsubscribe(step_id);
  }
  // Removes a stream that has been lost.
  void Forget(const Stream* stream) {
    MutexLock lock(mu_);
    const auto found = streams_.find(stream->producer().name);
    if (found != streams_.end() && found->second.get() == stream) streams_.erase(found);
  }

 private:
  // Returns the stream to `producer`; makes one if there is none to its incarnation. In that case
  // sets `*is_new` to true, and the caller has to open the stream.
  Made Find(const TaskId& producer, bool* is_new) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto found = streams_.find(producer.name);
    // A stream to an earlier incarnation serves only the steps that began with that incarnation.
    *is_new = found == streams_.end() || found->second->producer() != producer;
    if (!*is_new) return found->second;
    ASSIGN_OR_RETURN(std::shared_ptr<Stream> stream, make_(producer));
    streams_[producer.name] = stream;
    return stream;
  }

  const std::function<Made(const TaskId&)> make_;
  const std::function<void(const std::shared_ptr<Stream>&)> open_;
  Mutex mu_;  // locked before the mutex of a stream
  std::map<std::string, std::shared_ptr<Stream>> streams_ ABSL_GUARDED_BY(mu_);  // by task's name
};

}  // namespace penstock
