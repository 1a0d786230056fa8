// SPDX-License-Identifier: Apache-2.0
#include "client/summary/summary_writer.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/log.h"
#include "core/graph/graph_proto.h"
#include "proto/tensorflow/event.pb.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock::client {
namespace {

constexpr char kFileVersion[] = "brain.Event:2";
constexpr size_t kMessageBytesMax = INT_MAX;

int64_t Nanos(double seconds) {
  constexpr double kLongest = 100.0 * 365 * 24 * 3600;
  return static_cast<int64_t>(std::clamp(seconds, 0.0, kLongest) * 1e9);
}

double WallSeconds(Env& env) { return static_cast<double>(env.WallMicros()) * 1e-6; }

// Returns a new file name. The order of the names must be the order of the times, because readers
// read a folder's files in order of names.
std::string NewFileName(Env& env) {
  static std::atomic<int> files{0};
  char host[HOST_NAME_MAX + 1] = "";
  if (gethostname(host, sizeof(host) - 1) != 0 || *host == '\0') {
    std::snprintf(host, sizeof(host), "localhost");
  }
  return absl::StrFormat("events.out.tfevents.%010d.%s.%d.%d", env.WallMicros() / 1'000'000, host,
                         getpid(), files++);
}

tensorflow::SessionLog::SessionStatus StatusOf(SummaryWriter::SessionEvent event) {
  switch (event) {
    case SummaryWriter::SessionEvent::kStart:
      return tensorflow::SessionLog::START;
    case SummaryWriter::SessionEvent::kStop:
      return tensorflow::SessionLog::STOP;
    case SummaryWriter::SessionEvent::kCheckpoint:
      break;
  }
  return tensorflow::SessionLog::CHECKPOINT;
}

}  // namespace

StatusOr<std::unique_ptr<SummaryWriter>> SummaryWriter::Create(const std::string& folder,
                                                               const Options& options) {
  RETURN_IF_ERROR(options.env->CreateDirectories(folder));
  std::unique_ptr<SummaryWriter> writer(new SummaryWriter(folder, options));
  RETURN_IF_ERROR(writer->Write({}));
  writer->thread_ = options.scheduler->StartThread("summary writer",
                                                   [w = writer.get()] { w->WriteUntilClosed(); });
  return writer;
}

SummaryWriter::SummaryWriter(std::string folder, const Options& options)
    : folder_(std::move(folder)),
      options_(options),
      work_(*options.scheduler, "events to write"),
      done_(*options.scheduler, "an event file to be written") {}

SummaryWriter::~SummaryWriter() {
  if (thread_ == nullptr) return;
  const Status closed = Close();
  if (!closed.ok()) {
    Log({.level = LogLevel::kWarning,
         .event = "summaries_lost",
         .text = StrCat("summaries in ", folder_, " may be incomplete: ", closed.message())});
  }
}

std::string SummaryWriter::path() const {
  MutexLock lock(mu_);
  return path_;
}

int64_t SummaryWriter::FlushNanos() const { return Nanos(options_.flush_seconds); }

Status SummaryWriter::AddScalar(const std::string& tag, double value, int64_t step) {
  return AddScalars({{tag, value}}, step);
}

Status SummaryWriter::AddScalars(const std::map<std::string, double>& values, int64_t step) {
  tensorflow::Event event;
  for (const auto& [tag, value] : values) {
    tensorflow::Summary::Value* const v = event.mutable_summary()->add_value();
    v->set_tag(tag);
    v->set_simple_value(static_cast<float>(value));
  }
  return Add(&event, step);
}

// Gives each number a bucket of its own, from number - 0.5 to number + 0.5.
Status SummaryWriter::AddHistogram(const std::string& tag, const std::map<int64_t, int64_t>& counts,
                                   int64_t step) {
  tensorflow::Event event;
  tensorflow::Summary::Value* const v = event.mutable_summary()->add_value();
  v->set_tag(tag);
  tensorflow::HistogramProto* const histogram = v->mutable_histo();
  double total = 0, sum = 0, sum_squares = 0;
  const auto add_bucket = [&](double limit, double count) {
    histogram->add_bucket_limit(limit);
    histogram->add_bucket(count);
  };
  for (const auto& [number, count] : counts) {
    const auto value = static_cast<double>(number), times = static_cast<double>(count);
    const int buckets = histogram->bucket_limit_size();
    if (buckets == 0 || histogram->bucket_limit(buckets - 1) < value - 0.5) {
      add_bucket(value - 0.5, 0);
    }
    add_bucket(value + 0.5, times);
    total += times;
    sum += value * times;
    sum_squares += value * value * times;
  }
  if (!counts.empty()) {
    histogram->set_min(static_cast<double>(counts.begin()->first));
    histogram->set_max(static_cast<double>(counts.rbegin()->first));
  }
  histogram->set_num(total);
  histogram->set_sum(sum);
  histogram->set_sum_squares(sum_squares);
  return Add(&event, step);
}

Status SummaryWriter::AddSummary(string_view summary, int64_t step) {
  tensorflow::Event event;
  if (summary.size() > kMessageBytesMax ||
      !event.mutable_summary()->ParseFromArray(summary.data(), static_cast<int>(summary.size()))) {
    return InvalidArgument("not a serialized Summary message (", summary.size(),
                           " bytes): fetch what a summary op returns");
  }
  return Add(&event, step);
}

Status SummaryWriter::AddGraph(const Graph& graph) {
  tensorflow::GraphDef def;
  ExportGraph(graph, &def);
  tensorflow::Event event;
  if (def.ByteSizeLong() > kMessageBytesMax || !def.SerializeToString(event.mutable_graph_def())) {
    return InvalidArgument("the graph has ", def.ByteSizeLong(),
                           " bytes, more than an event can hold (2 GiB): feed large constants, or "
                           "keep them in variables");
  }
  return Add(&event, 0);
}

Status SummaryWriter::AddSession(SessionEvent kind, int64_t step, const std::string& checkpoint) {
  tensorflow::Event event;
  event.mutable_session_log()->set_status(StatusOf(kind));
  event.mutable_session_log()->set_checkpoint_path(checkpoint);
  return Add(&event, step);
}

Status SummaryWriter::AddRunMetadata(const std::string& tag, const std::string& run_metadata,
                                     int64_t step) {
  tensorflow::Event event;
  event.mutable_tagged_run_metadata()->set_tag(tag);
  event.mutable_tagged_run_metadata()->set_run_metadata(run_metadata);
  return Add(&event, step);
}

Status SummaryWriter::Add(tensorflow::Event* event, int64_t step) {
  event->set_wall_time(WallSeconds(*options_.env));
  event->set_step(step);
  if (event->ByteSizeLong() > kMessageBytesMax) {
    return InvalidArgument("an event of ", event->ByteSizeLong(), " bytes: at most 2 GiB");
  }
  return Enqueue(event->SerializeAsString());
}

Status SummaryWriter::Enqueue(std::string event) {
  MutexLock lock(mu_);
  if (closing_) return FailedPrecondition("the summary writer of ", folder_, " is closed");
  const int64_t now = options_.env->NowNanos();
  if (failing_since_ns_ >= 0 && options_.give_up_seconds > 0 &&
      now - failing_since_ns_ > Nanos(options_.give_up_seconds)) {
    return Annotate(error_, StrCat("no summary could be written to ", folder_, " for ",
                                   options_.give_up_seconds, " s"));
  }
  ++added_;
  const auto bytes = static_cast<int64_t>(event.size());
  if (pending_bytes_ + bytes > options_.pending_bytes_max) {
    Drop(1);
    return OkStatus();
  }
  pending_bytes_ += bytes;
  pending_.push_back(std::move(event));
  if (due_ns_ == Condition::kNever) {
    due_ns_ = now + FlushNanos();
    work_.NotifyAll();
  }
  return OkStatus();
}

void SummaryWriter::Drop(size_t events) {
  finished_ += static_cast<int64_t>(events);
  dropped_ += static_cast<int64_t>(events);
  Log({.level = LogLevel::kWarning,
       .event = "summaries_dropped",
       .text = StrCat(dropped_, " summaries of ", folder_,
                      " were dropped: the disk did not keep up, or they are larger than ",
                      options_.pending_bytes_max, " bytes"),
       .fields = {{"folder", folder_}, {"dropped", dropped_}},
       .limited = true});
}

void SummaryWriter::WriteUntilClosed() {
  MutexLock lock(mu_);
  while (true) {
    const bool closing = closing_;
    if (!closing) {
      // A change of due_ns_, or Close, ends the wait early.
      const int64_t due_ns = due_ns_;
      work_.WaitUntil(mu_, due_ns, [this, due_ns]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return closing_ || due_ns_ != due_ns;
      });
      if (!closing_ && options_.env->NowNanos() < due_ns_) continue;
    }
    std::vector<std::string> events = std::exchange(pending_, {});
    due_ns_ = Condition::kNever;
    lock.Unlock();
    const Status status = Write(events);
    lock.Lock();
    Written(status, std::move(events));
    if (closing) break;
  }
}

// Records the result of an attempt to write. Events that were not written wait for the next
// attempt.
void SummaryWriter::Written(const Status& status, std::vector<std::string> events) {
  ++attempts_;
  error_ = status;
  const int64_t now = options_.env->NowNanos();
  if (status.ok()) {
    failing_since_ns_ = -1;
    dropped_ = 0;
    for (const std::string& event : events) pending_bytes_ -= static_cast<int64_t>(event.size());
    finished_ += static_cast<int64_t>(events.size());
  } else {
    if (failing_since_ns_ < 0) failing_since_ns_ = now;
    events.insert(events.end(), std::make_move_iterator(pending_.begin()),
                  std::make_move_iterator(pending_.end()));
    pending_ = std::move(events);
    due_ns_ = now + FlushNanos();
    Log({.level = LogLevel::kWarning,
         .event = "summaries_not_written",
         .text = StrCat("summaries NOT WRITTEN: ", status.message(), "; ", pending_.size(),
                        " are kept, and written when that is possible"),
         .fields = {{"folder", folder_}, {"pending", static_cast<int64_t>(pending_.size())}},
         .limited = true});
  }
  done_.NotifyAll();
}

// Appends to the file, opening a new one if none is open. Closes the file after an error.
Status SummaryWriter::Write(const std::vector<std::string>& events) {
  const bool opened = file_ == nullptr;
  if (opened) RETURN_IF_ERROR(OpenFile());
  Status status = OkStatus();
  for (const std::string& event : events) {
    if (status.ok()) status = file_->Write(event);
  }
  if (status.ok()) status = file_->Flush();
  if (status.ok()) return status;
  file_->Close().IgnoreError();  // Close would only repeat the error
  file_ = nullptr;
  MutexLock lock(mu_);
  // If the first flush of a file fails, the next file will have all of its events.
  if (opened) options_.env->RemoveFile(path_).IgnoreError();
  path_ = "";
  return status;
}

Status SummaryWriter::OpenFile() {
  const std::string path = StrCat(folder_, "/", NewFileName(*options_.env));
  ASSIGN_OR_RETURN(file_, RecordWriter::Create(*options_.env, path));
  {
    MutexLock lock(mu_);
    path_ = path;
  }
  tensorflow::Event version;
  version.set_wall_time(WallSeconds(*options_.env));
  version.set_file_version(kFileVersion);
  return file_->Write(version.SerializeAsString());
}

Status SummaryWriter::Flush(double timeout_seconds) {
  MutexLock lock(mu_);
  if (closing_) return FailedPrecondition("the summary writer of ", folder_, " is closed");
  const int64_t wanted = added_, attempts = attempts_;
  if (finished_ >= wanted) return OkStatus();
  due_ns_ = options_.env->NowNanos();
  work_.NotifyAll();
  // An attempt that is already running may not include the last events.
  const auto ended = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return finished_ >= wanted || (attempts_ > attempts && !error_.ok());
  };
  const int64_t deadline = options_.env->NowNanos() + Nanos(timeout_seconds);
  if (done_.WaitUntil(mu_, deadline, ended)) return finished_ >= wanted ? OkStatus() : error_;
  return DeadlineExceeded("the summaries in ", folder_, " were not written within ",
                          timeout_seconds, " s");
}

Status SummaryWriter::Close(double timeout_seconds) {
  {
    MutexLock lock(mu_);
    if (std::exchange(close_called_, true)) {
      return FailedPrecondition("the summary writer of ", folder_, " is closed");
    }
  }
  const Status flushed = Flush(timeout_seconds);
  {
    MutexLock lock(mu_);
    closing_ = true;
    work_.NotifyAll();
  }
  // If a write hangs in the kernel, joining the thread waits for it, because file system calls
  // cannot be cancelled.
  thread_ = nullptr;
  const Status closed = file_ == nullptr ? OkStatus() : file_->Close();
  file_ = nullptr;
  return flushed.ok() ? closed : flushed;
}

}  // namespace penstock::client
