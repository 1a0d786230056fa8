// SPDX-License-Identifier: Apache-2.0
//
// SummaryWriter: writes event files, which TensorBoard shows.
//
//   ASSIGN_OR_RETURN(auto writer, SummaryWriter::Create("/tmp/run"));
//   RETURN_IF_ERROR(writer->AddScalar("loss", 0.5, /*step=*/100));
//   RETURN_IF_ERROR(writer->Close());
//
// Each writer makes a file of its own, events.out.tfevents.<seconds>.<host>.<pid>.<number>: a
// TFRecord file of serialized Event messages. A thread writes it, so callers do not wait for the
// disk. An event is in the file after at most flush_seconds.
//
// If the file cannot be written, the writer logs it (core/base/log.h), keeps the events, and tries
// every flush_seconds to write them to a new file. After give_up_seconds without success, every Add
// function returns the error. Events beyond pending_bytes_max are dropped, and their number is
// logged.
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/env.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/record/record_writer.h"

namespace tensorflow {
class Event;
}  // namespace tensorflow

namespace penstock {
class Graph;
}  // namespace penstock

namespace penstock::client {

struct SummaryWriterOptions {
  double flush_seconds = 10;
  double give_up_seconds = 600;  // 0: never
  int64_t pending_bytes_max = 64 << 20;
  Env* env = &Env::Real();
  Scheduler* scheduler = &Scheduler::Real();  // must use the clock of `env`
};

class SummaryWriter {
 public:
  using Options = SummaryWriterOptions;
  // Makes the folder, if it is missing, and the file. Errors are those of the file system.
  static StatusOr<std::unique_ptr<SummaryWriter>> Create(const std::string& folder,
                                                         const Options& options = {});
  // Calls Close and ignores its error.
  ~SummaryWriter();

  Status AddScalar(const std::string& tag, double value, int64_t step);
  // Adds several scalars of one step, keyed by tag.
  Status AddScalars(const std::map<std::string, double>& values, int64_t step);
  // Adds a histogram of whole numbers: the count of each. Counts must not be negative.
  Status AddHistogram(const std::string& tag, const std::map<int64_t, int64_t>& counts,
                      int64_t step);
  // Adds a serialized Summary, such as the output of a summary op. InvalidArgument if it cannot be
  // parsed.
  Status AddSummary(string_view summary, int64_t step);
  // Writes the graph for TensorBoard's page "Graphs". InvalidArgument if it is larger than a
  // protobuf message can be.
  Status AddGraph(const Graph& graph);
  // kStart: the training starts or restarts with `step`; TensorBoard drops its data of that step
  // and later ones. kCheckpoint: `checkpoint` was written.
  enum class SessionEvent { kStart, kStop, kCheckpoint };
  Status AddSession(SessionEvent event, int64_t step, const std::string& checkpoint = "");
  // Adds a serialized RunMetadata, which TensorBoard's page "Graphs" offers under `tag`.
  Status AddRunMetadata(const std::string& tag, const std::string& run_metadata, int64_t step);

  // Waits until all events added before this call are in the file. If the writer cannot write them,
  // returns the error of the file system, or DeadlineExceeded after `timeout_seconds`.
  Status Flush(double timeout_seconds = 10);
  // Flushes, and ends the thread. Later calls return FailedPrecondition.
  Status Close(double timeout_seconds = 10);

  const std::string& folder() const { return folder_; }
  // Returns the path of the current file; "" if the last attempt to write failed.
  std::string path() const;

 private:
  SummaryWriter(std::string folder, const Options& options);
  Status Add(tensorflow::Event* event, int64_t step);
  Status Enqueue(std::string event);
  void WriteUntilClosed();
  Status Write(const std::vector<std::string>& events);
  Status OpenFile();
  void Written(const Status& status, std::vector<std::string> events)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Drop(size_t events) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t FlushNanos() const;

  const std::string folder_;
  const Options options_;
  std::unique_ptr<RecordWriter> file_;  // used only by the thread, once it runs

  mutable Mutex mu_;
  Condition work_, done_;
  std::string path_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> pending_ ABSL_GUARDED_BY(mu_);
  // size of pending_ and of the events that the thread is writing
  int64_t pending_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // events dropped since the last log line about it
  int64_t dropped_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t added_ ABSL_GUARDED_BY(mu_) = 0;     // number of events added so far
  int64_t finished_ ABSL_GUARDED_BY(mu_) = 0;  // how many of added_ were written or dropped
  int64_t attempts_ ABSL_GUARDED_BY(mu_) = 0;
  // The time at which the thread writes next.
  int64_t due_ns_ ABSL_GUARDED_BY(mu_) = Condition::kNever;
  // the time of the first failed attempt; -1: the last attempt succeeded
  int64_t failing_since_ns_ ABSL_GUARDED_BY(mu_) = -1;
  Status error_ ABSL_GUARDED_BY(mu_);  // the error of the last attempt
  bool close_called_ ABSL_GUARDED_BY(mu_) = false;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;  // asks the thread to end
  std::unique_ptr<Thread> thread_;
};

}  // namespace penstock::client
