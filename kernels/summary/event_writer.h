// SPDX-License-Identifier: Apache-2.0
//
// EventWriter: the resource behind the handles of SummaryWriter: an event file that TensorBoard
// reads. It has no file before Open and after Close.
//
// Thread-safe; calls wait for the disk.
//
// Actions in a StateLog, all without values: "open", "write", "flush", "close".
#pragma once

#include <memory>
#include <string>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/op/resource.h"
#include "core/record/record_writer.h"

namespace tensorflow {
class Event;
}  // namespace tensorflow

namespace penstock {

class EventWriter final : public Resource {
 public:
  // TensorFlow's name of the resource's type.
  static constexpr char kTypeName[] = "tensorflow::SummaryWriterInterface";

  struct Options {
    std::string directory;     // the directory, which is created if it does not exist
    std::string suffix;        // the suffix of the file's name
    int64_t events_max = 0;    // events kept in memory; one more causes a flush
    int64_t flush_millis = 0;  // an event this long after the last flush causes a flush
  };

  explicit EventWriter(std::string name) : name_(std::move(name)) {}
  ~EventWriter() override;

  const char* TypeName() const override { return kTypeName; }
  std::string DebugString() const override;
  const char* OpaqueReason() const override { return "it writes a file"; }

  // Begins a file "events.out.tfevents.SECONDS.HOST" + suffix. Returns OK if a file is open
  // already, as in TensorFlow; an error if the file cannot be written. `env` must outlive the
  // writer.
  Status Open(Env& env, const Options& options, const UpdateOrigin& origin)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Each function adds one event. FailedPrecondition if no file is open; InvalidArgument if the
  // bytes are not a valid message of the function's type.
  Status AddSummary(int64_t step, const std::string& summary, const UpdateOrigin& origin)
      ABSL_LOCKS_EXCLUDED(mu_);
  Status AddGraph(int64_t step, const std::string& graph_def, const UpdateOrigin& origin)
      ABSL_LOCKS_EXCLUDED(mu_);
  Status AddEvent(const std::string& event, const UpdateOrigin& origin) ABSL_LOCKS_EXCLUDED(mu_);
  Status Flush(const UpdateOrigin& origin) ABSL_LOCKS_EXCLUDED(mu_);
  // Closes the file. Returns OK if no file is open, or an error if the rest of the file cannot be
  // written.
  Status Close(const UpdateOrigin& origin) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Status Add(tensorflow::Event* event, int64_t step, const UpdateOrigin& origin)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Adds an event, as one change of the resource. FailedPrecondition if no file is open.
  Status AddChange(const tensorflow::Event& event, const UpdateOrigin& origin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status Write(const tensorflow::Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status FlushFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string name_;
  mutable Mutex mu_;
  std::unique_ptr<RecordWriter> file_ ABSL_GUARDED_BY(mu_);  // null if not open
  Env* env_ ABSL_GUARDED_BY(mu_) = nullptr;
  Options options_ ABSL_GUARDED_BY(mu_);
  int64_t unflushed_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t flushed_ns_ ABSL_GUARDED_BY(mu_) = 0;  // time of the last flush, by Env::NowNanos()
};

}  // namespace penstock
