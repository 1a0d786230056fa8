// SPDX-License-Identifier: Apache-2.0
#include "core/base/env.h"

#include "absl/strings/numbers.h"

namespace penstock {
namespace {

Status WriteAndSync(Env& env, const std::string& path,
                    absl::FunctionRef<Status(WritableFile&)> write) {
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, env.NewWritableFile(path));
  Status status = write(*file);
  if (status.ok()) status = file->Sync();
  const Status closed = file->Close();
  return status.ok() ? closed : status;
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Status Env::WriteFileAtomically(const std::string& path, string_view contents) {
  return WriteFileAtomically(path, [&](WritableFile& file) { return file.Append(contents); });
}

Status Env::WriteFileAtomically(const std::string& path,
                                absl::FunctionRef<Status(WritableFile&)> write) {
  // Uses a unique name, so that two writers of one path do not write into the same file.
  const std::string temporary = StrCat(path, ".tmp.", absl::Hex(RandomU64()));
  Status status = WriteAndSync(*this, temporary, write);
  if (status.ok()) status = Rename(temporary, path);
  if (!status.ok()) {
    RemoveFile(temporary).IgnoreError();  // return the first error, not one of RemoveFile
    return status;
  }
  return SyncDirectory(DirectoryOf(path));
}

}  // namespace penstock
