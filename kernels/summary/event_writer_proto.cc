// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "kernels/summary/event_writer.h"
#include "proto/tensorflow/event.pb.h"
#include "proto/tensorflow/graph.pb.h"

namespace penstock {
namespace {

constexpr char kFileVersion[] = "brain.Event:2";
constexpr int64_t kMicrosPerSecond = 1'000'000, kNanosPerMilli = 1'000'000;

std::string HostName() {
  char host[256] = {};
  return gethostname(host, sizeof(host) - 1) == 0 ? host : "localhost";
}

double WallTime(Env& env) {
  return static_cast<double>(env.WallMicros()) / static_cast<double>(kMicrosPerSecond);
}

std::vector<Tensor> NoValues() { return {}; }

}  // namespace

EventWriter::~EventWriter() {
  MutexLock lock(mu_);
  if (file_ == nullptr) return;
  // Ignores the error: only CloseSummaryWriter reports errors.
  const Status closed = file_->Close();
  if (!closed.ok()) return;
}

std::string EventWriter::DebugString() const {
  MutexLock lock(mu_);
  return StrCat("SummaryWriter '", name_, "', ",
                file_ == nullptr ? "closed" : StrCat("writes to ", options_.directory));
}

Status EventWriter::Open(Env& env, const Options& options, const UpdateOrigin& origin) {
  MutexLock lock(mu_);
  if (file_ != nullptr) return OkStatus();
  RETURN_IF_ERROR(env.CreateDirectories(options.directory));
  const std::string path =
      absl::StrFormat("%s/events.out.tfevents.%010d.%s%s", options.directory,
                      env.WallMicros() / kMicrosPerSecond, HostName(), options.suffix);
  ASSIGN_OR_RETURN(file_, RecordWriter::Create(env, path));
  env_ = &env;
  options_ = options;
  Changed(origin, "open", NoValues);
  tensorflow::Event version;
  version.set_wall_time(WallTime(env));
  version.set_file_version(kFileVersion);
  RETURN_IF_ERROR(Write(version));
  return FlushFile();
}

Status EventWriter::AddSummary(int64_t step, const std::string& summary,
                               const UpdateOrigin& origin) {
  tensorflow::Event event;
  if (!event.mutable_summary()->ParseFromString(summary)) {
    return InvalidArgument("tensor must be a serialized Summary, its ", summary.size(),
                           " bytes are none");
  }
  return Add(&event, step, origin);
}

Status EventWriter::AddGraph(int64_t step, const std::string& graph_def,
                             const UpdateOrigin& origin) {
  if (!tensorflow::GraphDef().ParseFromString(graph_def)) {
    return InvalidArgument("tensor must be a serialized GraphDef, its ", graph_def.size(),
                           " bytes are none");
  }
  tensorflow::Event event;
  event.set_graph_def(graph_def);
  return Add(&event, step, origin);
}

Status EventWriter::AddEvent(const std::string& bytes, const UpdateOrigin& origin) {
  tensorflow::Event event;
  if (!event.ParseFromString(bytes)) {
    return InvalidArgument("event must be a serialized Event, its ", bytes.size(),
                           " bytes are none");
  }
  MutexLock lock(mu_);
  return AddChange(event, origin);
}

Status EventWriter::Add(tensorflow::Event* event, int64_t step, const UpdateOrigin& origin) {
  event->set_step(step);
  MutexLock lock(mu_);
  if (env_ != nullptr) event->set_wall_time(WallTime(*env_));
  return AddChange(*event, origin);
}

Status EventWriter::AddChange(const tensorflow::Event& event, const UpdateOrigin& origin) {
  if (file_ == nullptr) {
    return FailedPrecondition("SummaryWriter '", name_,
                              "' has no file; run CreateSummaryFileWriter first");
  }
  Changed(origin, "write", NoValues);
  return Write(event);
}

Status EventWriter::Write(const tensorflow::Event& event) {
  RETURN_IF_ERROR(file_->Write(event.SerializeAsString()));
  ++unflushed_;
  const int64_t age_ns = env_->NowNanos() - flushed_ns_;
  const bool due = age_ns / kNanosPerMilli > options_.flush_millis;
  return unflushed_ > options_.events_max || due ? FlushFile() : OkStatus();
}

Status EventWriter::FlushFile() {
  unflushed_ = 0;
  flushed_ns_ = env_->NowNanos();
  return file_->Flush();
}

Status EventWriter::Flush(const UpdateOrigin& origin) {
  MutexLock lock(mu_);
  if (file_ == nullptr) {
    return FailedPrecondition("SummaryWriter '", name_, "' has no file to flush");
  }
  Changed(origin, "flush", NoValues);
  return FlushFile();
}

Status EventWriter::Close(const UpdateOrigin& origin) {
  MutexLock lock(mu_);
  if (file_ == nullptr) return OkStatus();
  Changed(origin, "close", NoValues);
  const std::unique_ptr<RecordWriter> file = std::move(file_);
  return file->Close();
}

}  // namespace penstock
