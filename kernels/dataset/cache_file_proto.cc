// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/strings/str_split.h"
#include "core/record/input_stream.h"
#include "core/wire/tensor_proto.h"
#include "kernels/dataset/cache_file.h"
#include "kernels/dataset/process_identity.h"
#include "proto/tensorflow/tensor.pb.h"

namespace penstock {
namespace {

constexpr char kComponent = 'c', kEnd = 'e';

std::string CachePath(const std::string& filename) { return filename + ".cache"; }

std::string Header(const ElementSpec& spec) {
  std::string header = "Penstock dataset cache, version 1:";
  for (size_t i = 0; i < spec.types.size(); ++i) {
    StrAppend(&header, " ", Name(spec.types[i]), spec.shapes[i].ToString());
  }
  return header;
}

}  // namespace

bool CacheExists(Env& env, const std::string& filename) {
  return env.FileExists(CachePath(filename));
}

StatusOr<std::unique_ptr<CacheWriter>> CacheWriter::Create(Env& env, const std::string& filename,
                                                           const ElementSpec& spec) {
  std::unique_ptr<CacheWriter> writer(new CacheWriter(env, filename, StrCat(env.RandomU64())));
  RETURN_IF_ERROR(writer->Lock());
  ASSIGN_OR_RETURN(writer->records_, RecordWriter::Create(env, writer->PartialPath()));
  RETURN_IF_ERROR(writer->records_->Write(Header(spec)));
  return writer;
}

// Two writers that pass this check at the same time do no harm, because each writes a file of its
// own.
Status CacheWriter::Lock() {
  const StatusOr<std::string> left = env_.ReadFile(LockPath());
  if (left.ok()) {
    RETURN_IF_ERROR(CheckLockWasLeft(*left));
  } else if (!absl::IsNotFound(left.status())) {
    return left.status();
  }
  const StatusOr<ProcessIdentity> here = ProcessIdentity::OfThisProcess(env_);
  lock_text_ = StrCat(token_, "\n", here.ok() ? here->ToString() : "");
  return env_.WriteFileAtomically(LockPath(), lock_text_);
}

// Returns OK if the process that wrote a lockfile with this text has ended, and removes its
// unfinished file. Otherwise returns AlreadyExists.
Status CacheWriter::CheckLockWasLeft(const std::string& lock_text) const {
  const std::pair<std::string, std::string> lines =
      absl::StrSplit(lock_text, absl::MaxSplits('\n', 1));
  const std::optional<ProcessIdentity> owner = ProcessIdentity::Parse(lines.second);
  if (owner && owner->LifeNow(env_) == ProcessIdentity::Life::kEnded) {
    // After a boot the file stays: another machine of the same name may be writing it.
    if (owner->IsOfThisBoot(env_)) (void)env_.RemoveFile(PartialPath(lines.first));
    return OkStatus();
  }
  return AlreadyExists("There appears to be a concurrent caching iterator running - cache ",
                       "lockfile already exists ('", LockPath(), "'",
                       owner ? StrCat(", of process ", owner->pid, " on '", owner->host, "'") : "",
                       "), and the cache is incomplete. If no other iterator writes it, delete ",
                       "the lockfile and re-initialize the iterator.");
}

CacheWriter::~CacheWriter() {
  if (lock_text_.empty()) return;
  if (records_ != nullptr) {
    (void)records_->Close();
    (void)env_.RemoveFile(PartialPath());
  }
  const StatusOr<std::string> owner = env_.ReadFile(LockPath());
  if (owner.ok() && *owner == lock_text_) (void)env_.RemoveFile(LockPath());
}

Status CacheWriter::Write(const Element& element) {
  for (const Tensor& component : element) {
    tensorflow::TensorProto proto;
    RETURN_IF_ERROR(TensorToProto(component, &proto));
    std::string record(1, kComponent);
    if (proto.ByteSizeLong() >= static_cast<size_t>(InputStream::kMaxRecordBytes) ||
        !proto.AppendToString(&record)) {
      return InvalidArgument("a component of ", proto.ByteSizeLong(), " bytes is too large for a ",
                             "cache in a file");
    }
    RETURN_IF_ERROR(records_->Write(record));
  }
  ++elements_;
  return OkStatus();
}

Status CacheWriter::Finish() {
  RETURN_IF_ERROR(records_->Write(StrCat(string_view(&kEnd, 1), elements_)));
  RETURN_IF_ERROR(records_->Close());
  RETURN_IF_ERROR(env_.Rename(PartialPath(), CachePath(filename_)));
  records_ = nullptr;
  return OkStatus();
}

StatusOr<std::unique_ptr<CacheReader>> CacheReader::Open(Env& env, const std::string& filename,
                                                         const ElementSpec& spec,
                                                         const Position& position) {
  const std::string path = CachePath(filename);
  ASSIGN_OR_RETURN(RecordReader records, RecordReader::Open(env, path));
  std::unique_ptr<CacheReader> reader(new CacheReader(path, spec, std::move(records)));
  RETURN_IF_ERROR(reader->CheckHeader());
  if (position.offset == 0) return reader;
  ASSIGN_OR_RETURN(reader->records_, RecordReader::Open(env, path));
  RETURN_IF_ERROR(reader->records_.SkipTo(position.offset));
  reader->elements_ = position.elements;
  return reader;
}

Status CacheReader::CheckHeader() {
  ASSIGN_OR_RETURN(const std::string found, Record());
  const std::string expected = Header(spec_);
  if (found == expected) return OkStatus();
  return FailedPrecondition("'", path_, "' was written for another dataset: it begins with '",
                            found.substr(0, 200), "', expected is '", expected, "'");
}

StatusOr<std::string> CacheReader::Record() {
  std::string record;
  ASSIGN_OR_RETURN(const bool found, records_.Read(&record));
  if (found && !record.empty()) return record;
  return DataLoss("the cache '", path_, "' is incomplete: it ends after ", elements_,
                  " elements. Delete it to write it again.");
}

Status CacheReader::Read(Element* element, bool* end) {
  element->clear();
  for (size_t i = 0; i < spec_.types.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string record, Record());
    if (record[0] == kEnd && i == 0) {
      if (record.substr(1) != StrCat(elements_)) {
        return DataLoss("the cache '", path_, "' has ", elements_, " elements, written were ",
                        record.substr(1, 20));
      }
      *end = true;
      return OkStatus();
    }
    tensorflow::TensorProto proto;
    if (record[0] != kComponent ||
        !proto.ParseFromArray(record.data() + 1, static_cast<int>(record.size() - 1))) {
      return DataLoss("the cache '", path_, "' is damaged at element ", elements_);
    }
    ASSIGN_OR_RETURN(Tensor component, TensorFromProto(proto));
    if (component.dtype() != spec_.types[i] || !spec_.shapes[i].Compatible(component.shape())) {
      return DataLoss("the cache '", path_, "' has ", Name(component.dtype()),
                      component.shape().ToString(), " as component ", i, " of element ", elements_);
    }
    element->push_back(std::move(component));
  }
  ++elements_;
  *end = false;
  return OkStatus();
}

}  // namespace penstock
