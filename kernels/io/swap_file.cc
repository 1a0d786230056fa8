// SPDX-License-Identifier: Apache-2.0
#include "kernels/io/swap_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace penstock {
namespace {

constexpr int64_t kPieceBytes = 8 << 20;

std::string TemporaryDirectory() {
  const char* const directory = std::getenv("TMPDIR");
  return directory == nullptr || *directory == '\0' ? "/tmp" : directory;
}

}  // namespace

SwapFile& SwapFile::OfProcess() {
  static SwapFile& file = *new SwapFile(TemporaryDirectory());
  return file;
}

SwapFile::~SwapFile() {
  if (fd_ >= 0) close(fd_);
}

Status SwapFile::FileError(const char* what) const {
  const int error = errno;
  const std::string why =
      StrCat("swapping tensors to a file in ", directory_, ": ", what, ": ", std::strerror(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return ResourceExhausted(why, "; set TMPDIR to a directory with more room");
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case EROFS:
      return FailedPrecondition(why, "; set TMPDIR to a directory that this process may write to");
    default:
      return Unavailable(why, "; TMPDIR names the directory");
  }
}

Status SwapFile::Open() {
  std::string path = StrCat(directory_, "/penstock-swap-XXXXXX");
  fd_ = mkostemp(path.data(), O_CLOEXEC);
  if (fd_ < 0) return FileError("no file can be made");
  unlink(path.c_str());
  return OkStatus();
}

StatusOr<int64_t> SwapFile::Take(int64_t bytes) {
  MutexLock lock(mu_);
  if (fd_ < 0) RETURN_IF_ERROR(Open());
  in_use_ += bytes;
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [offset, size] = *it;
    if (size < bytes) continue;
    free_.erase(it);
    if (size > bytes) free_[offset + bytes] = size - bytes;
    return offset;
  }
  end_ += bytes;
  return end_ - bytes;
}

void SwapFile::Return(int64_t offset, int64_t bytes) {
  if (bytes == 0) return;
  MutexLock lock(mu_);
  in_use_ -= bytes;
  auto it = free_.emplace(offset, bytes).first;
  if (const auto next = std::next(it); next != free_.end() && offset + bytes == next->first) {
    it->second += next->second;
    free_.erase(next);
  }
  if (it != free_.begin()) {
    if (const auto before = std::prev(it); before->first + before->second == offset) {
      before->second += it->second;
      free_.erase(it);
    }
  }
  if (in_use_ > 0) return;
  free_.clear();
  end_ = 0;
  // Frees the disk's blocks. Ignores an error, because later tensors would use the same blocks.
  (void)!ftruncate(fd_, 0);
}

Status SwapFile::Write(int64_t offset, const void* data, int64_t bytes, PieceCheck check) {
  const char* const from = static_cast<const char*>(data);
  for (int64_t done = 0; done < bytes;) {
    RETURN_IF_ERROR(check());
    const ssize_t n = pwrite(fd_, from + done, std::min(bytes - done, kPieceBytes), offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return FileError("writing");
    done += n;
  }
  return OkStatus();
}

Status SwapFile::Read(int64_t offset, void* data, int64_t bytes, PieceCheck check) {
  char* const to = static_cast<char*>(data);
  for (int64_t done = 0; done < bytes;) {
    RETURN_IF_ERROR(check());
    const ssize_t n = pread(fd_, to + done, std::min(bytes - done, kPieceBytes), offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError("reading");
    if (n == 0) return DataLoss("the file of swapped tensors in ", directory_, " is too short");
    done += n;
  }
  return OkStatus();
}

int64_t SwapFile::bytes_in_use() const {
  MutexLock lock(mu_);
  return in_use_;
}

}  // namespace penstock
