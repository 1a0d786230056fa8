// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/bundle_writer.h"

#include <utility>

#include "core/checkpoint/publish.h"
#include "core/checkpoint/tensor_bytes.h"

namespace penstock {
namespace {

Status CheckName(string_view name) {
  if (name.empty()) return InvalidArgument("a tensor needs a name");
  if (name[0] == '\0') return InvalidArgument("the name of a tensor begins with a zero byte");
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<BundleWriter>> BundleWriter::Create(Env& env, std::string prefix) {
  if (prefix.empty() || prefix.back() == '/') {
    return InvalidArgument("'", prefix, "' is not the prefix of a checkpoint");
  }
  RETURN_IF_ERROR(CreateDurableDirectories(env, DirectoryOf(prefix)));
  std::unique_ptr<BundleWriter> writer(new BundleWriter(env, std::move(prefix)));
  const std::string temporary = TemporaryPath(env, DataPath(writer->prefix_, 0, 1));
  ASSIGN_OR_RETURN(writer->data_, env.NewWritableFile(temporary));
  writer->temporary_ = temporary;
  return writer;
}

BundleWriter::~BundleWriter() {
  if (data_ != nullptr) data_->Close().IgnoreError();  // the file is removed in any case
  if (!temporary_.empty()) env_.RemoveFile(temporary_).IgnoreError();
}

Status BundleWriter::Add(string_view name, const Tensor& tensor) {
  RETURN_IF_ERROR(CheckName(name));
  if (entries_.contains(std::string(name))) {
    return InvalidArgument("tensor '", name, "' is saved twice");
  }
  return Write(std::string(name), tensor);
}

Status BundleWriter::AddSlice(string_view name, const Shape& whole, const TensorSlice& slice,
                              const Tensor& tensor) {
  RETURN_IF_ERROR(CheckSliceShape(name, whole, slice, tensor.shape()));
  if (tensor.shape() == whole) return Add(name, tensor);
  RETURN_IF_ERROR(CheckName(name));
  const auto found = entries_.find(std::string(name));
  if (found != entries_.end()) {
    const BundleEntry& entry = found->second;
    if (entry.slices.empty() || entry.dtype != tensor.dtype() || entry.shape != whole) {
      return InvalidArgument("tensor '", name, "' is saved as ", Name(entry.dtype),
                             entry.shape.ToString(), entry.slices.empty() ? ", whole" : "",
                             ", and as a slice of ", Name(tensor.dtype()), whole.ToString());
    }
  }
  const std::string key = SliceKey(name, slice);
  if (entries_.contains(key)) {
    return InvalidArgument("slice '", slice.ToString(), "' of tensor '", name, "' is saved twice");
  }
  RETURN_IF_ERROR(Write(key, tensor));
  BundleEntry& entry = entries_[std::string(name)];
  entry.dtype = tensor.dtype();
  entry.shape = whole;
  entry.slices.push_back(slice);
  return OkStatus();
}

Status BundleWriter::Write(const std::string& key, const Tensor& tensor) {
  RETURN_IF_ERROR(status_);
  const auto append = [this](string_view bytes) { return status_ = data_->Append(bytes); };
  ASSIGN_OR_RETURN(const WrittenBytes written, WriteTensorBytes(tensor, append));
  entries_[key] = {.dtype = tensor.dtype(),
                   .shape = tensor.shape(),
                   .offset = std::exchange(offset_, offset_ + written.size),
                   .size = written.size,
                   .masked_crc = written.masked_crc};
  return OkStatus();
}

Status BundleWriter::CloseData() {
  RETURN_IF_ERROR(status_);
  status_ = data_->Sync();
  const Status closed = std::exchange(data_, nullptr)->Close();
  return status_.ok() ? closed : status_;
}

Status BundleWriter::Finish() {
  RETURN_IF_ERROR(CloseData());
  RETURN_IF_ERROR(
      PublishBundle(env_, prefix_, 1, entries_, {{temporary_, DataPath(prefix_, 0, 1)}}));
  temporary_.clear();
  return OkStatus();
}

}  // namespace penstock
