// SPDX-License-Identifier: Apache-2.0
//
// Implements Env on the real machine: POSIX clocks and files.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "core/base/check.h"
#include "core/base/env.h"

namespace penstock {
namespace {

// Returns text that tells the process' limit for file sizes, to append to an error; "" if there is
// no limit.
std::string FileSizeLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return StrCat(" (this process may write files of at most ", limit.rlim_cur,
                " bytes: raise the limit with `ulimit -f`)");
}

// Returns "cannot open '/x/y': No such file or directory", with the code that fits errno.
Status FileError(int error, string_view doing, const std::string& path) {
  const std::string what = StrCat("cannot ", doing, " '", path, "'");
  const Status status = absl::ErrnoToStatus(error, what);
  if (error != EFBIG) return status;
  // Abseil's code for EFBIG is OutOfRange, which would make a training loop believe that its data
  // has ended.
  return ResourceExhausted(status.message(), FileSizeLimit());
}

// Ignores SIGXFSZ, so that a write beyond the limit for file sizes fails with EFBIG. Unless it is
// ignored, this signal ends the process. A handler that the program has set stays.
void IgnoreFileSizeSignal() {
  struct sigaction current = {};
  if (sigaction(SIGXFSZ, nullptr, &current) != 0) return;
  const bool has_handler = (current.sa_flags & SA_SIGINFO) != 0 || current.sa_handler != SIG_DFL;
  if (!has_handler) signal(SIGXFSZ, SIG_IGN);
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Opens with O_NONBLOCK, because opening a FIFO would else block until another process opens its
// other end.
StatusOr<Descriptor> Open(const std::string& path, int flags, string_view doing) {
  for (;;) {
    const int fd = open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd >= 0) return Descriptor(fd);
    if (errno != EINTR) return FileError(errno, doing, path);
  }
}

string_view KindOf(mode_t mode) {
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISCHR(mode) ? "a character device" : "a block device";
}

// Opens regular files only. Reading any other kind of file may block for ever (a FIFO, a terminal)
// or never end (/dev/zero), and nothing could cancel the step that reads.
StatusOr<Descriptor> OpenForReading(const std::string& path, struct stat* info) {
  ASSIGN_OR_RETURN(Descriptor fd, Open(path, O_RDONLY, "open"));
  if (fstat(fd.get(), info) != 0) return FileError(errno, "open", path);
  if (S_ISDIR(info->st_mode)) return FileError(EISDIR, "open", path);
  if (S_ISREG(info->st_mode)) return fd;
  return FailedPrecondition("cannot open '", path, "': it is ", KindOf(info->st_mode),
                            ", expected a regular file");
}

// Writing to a device is allowed, because a full device returns an error. Writing to a FIFO is not,
// because its reader may never read.
StatusOr<Descriptor> OpenForWriting(const std::string& path) {
  ASSIGN_OR_RETURN(Descriptor fd, Open(path, O_WRONLY | O_CREAT | O_TRUNC, "create"));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return FileError(errno, "create", path);
  if (!S_ISFIFO(info.st_mode)) return fd;
  return FailedPrecondition("cannot create '", path, "': it is a FIFO, expected a regular file");
}

// Appends are not buffered: appended bytes survive a crash of the process.
class RealWritableFile final : public WritableFile {
 public:
  RealWritableFile(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  Status Append(string_view data) override {
    RETURN_IF_ERROR(Usable());
    while (!data.empty()) {
      const ssize_t written = write(fd_.get(), data.data(), data.size());
      if (written >= 0) {
        data.remove_prefix(written);
      } else if (errno != EINTR) {
        return error_ = FileError(errno, "write to", path_);
      }
    }
    return OkStatus();
  }

  Status Sync() override {
    RETURN_IF_ERROR(Usable());
    // After a failed fsync the kernel has dropped the pages, so that a second fsync would return
    // OK.
    if (fsync(fd_.get()) != 0) return error_ = FileError(errno, "sync", path_);
    return OkStatus();
  }

  Status Close() override {
    if (fd_.get() < 0) return error_;
    // Linux closes the descriptor even if close returns an error.
    if (close(fd_.Release()) != 0 && error_.ok()) error_ = FileError(errno, "close", path_);
    return error_;
  }

 private:
  Status Usable() const {
    RETURN_IF_ERROR(error_);
    if (fd_.get() < 0) return FailedPrecondition("file '", path_, "' is closed");
    return OkStatus();
  }

  const std::string path_;
  Descriptor fd_;
  Status error_;
};

class RealRandomAccessFile final : public RandomAccessFile {
 public:
  RealRandomAccessFile(std::string path, Descriptor fd, int64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  int64_t size() const override { return size_; }

  Status Read(int64_t offset, int64_t count, char* buffer) const override {
    if (offset < 0 || count < 0 || !Contains(size_, offset, count)) {
      // Another handle may have appended to the file since it was opened.
      struct stat info;
      if (fstat(fd_.get(), &info) != 0) return FileError(errno, "read", path_);
      if (offset < 0 || count < 0 || !Contains(info.st_size, offset, count)) {
        return PastEnd(offset, count, info.st_size);
      }
    }
    for (int64_t done = 0; done < count;) {
      const ssize_t got = pread(fd_.get(), buffer + done, count - done, offset + done);
      if (got > 0) {
        done += got;
      } else if (got == 0) {
        return PastEnd(offset, count, offset + done);  // another process has truncated the file
      } else if (errno != EINTR) {
        return FileError(errno, "read", path_);
      }
    }
    return OkStatus();
  }

 private:
  static bool Contains(int64_t size, int64_t offset, int64_t count) {
    return offset <= size && count <= size - offset;
  }
  Status PastEnd(int64_t offset, int64_t count, int64_t end) const {
    return OutOfRange("cannot read ", count, " bytes at offset ", offset, " of '", path_,
                      "': it ends at ", end);
  }

  const std::string path_;
  const Descriptor fd_;
  const int64_t size_;
};

Status ReadInto(const std::string& path, std::string* contents) {
  struct stat info;
  ASSIGN_OR_RETURN(const Descriptor fd, OpenForReading(path, &info));
  if (info.st_size > 0) contents->reserve(info.st_size + 1);
  char block[64 << 10];  // the size is unknown: files in /proc have size 0
  for (;;) {
    const ssize_t got = read(fd.get(), block, sizeof block);
    if (got == 0) return OkStatus();
    if (got > 0) {
      contents->append(block, got);
    } else if (errno != EINTR) {
      return FileError(errno, "read", path);
    }
  }
}

int64_t Now(clockid_t clock) {
  timespec now;
  CHECK(clock_gettime(clock, &now) == 0);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class RealEnv final : public Env {
 public:
  RealEnv() { IgnoreFileSizeSignal(); }

  int64_t NowNanos() override { return Now(CLOCK_MONOTONIC); }
  int64_t WallMicros() override { return Now(CLOCK_REALTIME) / 1000; }

  void SleepForNanos(int64_t nanos) override {
    if (nanos <= 0) return;
    timespec left = {.tv_sec = nanos / 1'000'000'000, .tv_nsec = nanos % 1'000'000'000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
    }
  }

  uint64_t RandomU64() override {
    uint64_t value;
    // getrandom always returns up to 256 bytes completely.
    CHECK(getrandom(&value, sizeof value, 0) == sizeof value, "no randomness from the system");
    return value;
  }

  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override {
    ASSIGN_OR_RETURN(Descriptor fd, OpenForWriting(path));
    return std::make_unique<RealWritableFile>(path, std::move(fd));
  }

  StatusOr<std::unique_ptr<RandomAccessFile>> OpenFile(const std::string& path) override {
    struct stat info;
    ASSIGN_OR_RETURN(Descriptor fd, OpenForReading(path, &info));
    return std::make_unique<RealRandomAccessFile>(path, std::move(fd), info.st_size);
  }

  StatusOr<std::string> ReadFile(const std::string& path) override {
    std::string contents;
    try {
      RETURN_IF_ERROR(ReadInto(path, &contents));
    } catch (const std::exception&) {  // a string that gets no memory throws
      return FileError(ENOMEM, "read", path);
    }
    return contents;
  }

  bool FileExists(const std::string& path) override { return access(path.c_str(), F_OK) == 0; }

  StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override {
    DIR* directory = opendir(path.c_str());
    if (directory == nullptr) return FileError(errno, "list", path);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(directory)) {
      const string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    const int error = errno;
    closedir(directory);
    if (error != 0) return FileError(error, "list", path);
    std::sort(names.begin(), names.end());
    return names;
  }

  Status CreateDirectories(const std::string& path) override {
    for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
      const std::string prefix = path.substr(0, end);
      if (mkdir(prefix.c_str(), 0777) != 0 && !IsDirectory(prefix)) {
        return FileError(errno == EEXIST ? ENOTDIR : errno, "create directory", prefix);
      }
      if (end == std::string::npos) return OkStatus();
    }
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) == 0) return OkStatus();
    return FileError(errno, StrCat("rename '", from, "' to"), to);
  }

  Status RemoveFile(const std::string& path) override {
    return unlink(path.c_str()) == 0 ? OkStatus() : FileError(errno, "remove", path);
  }

  Status RemoveDirectory(const std::string& path) override {
    return rmdir(path.c_str()) == 0 ? OkStatus() : FileError(errno, "remove directory", path);
  }

  Status SyncDirectory(const std::string& path) override {
    ASSIGN_OR_RETURN(const Descriptor fd, Open(path, O_RDONLY | O_DIRECTORY, "open directory"));
    return fsync(fd.get()) == 0 ? OkStatus() : FileError(errno, "sync directory", path);
  }

 private:
  // Leaves errno unchanged, because the caller still needs mkdir's error.
  static bool IsDirectory(const std::string& path) {
    const int error = errno;
    struct stat info;
    const bool is_directory = stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    errno = error;
    return is_directory;
  }
};

}  // namespace

Env& Env::Real() {
  static Env& env = *new RealEnv;
  return env;
}

}  // namespace penstock
