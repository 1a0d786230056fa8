// SPDX-License-Identifier: Apache-2.0
#include "core/base/rooted_env.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_replace.h"

namespace penstock {
namespace {

constexpr char kOutsidePayload[] = "penstock/outside_file_root";
// If another process renames a directory meanwhile, openat2 fails with EAGAIN and is repeated, up
// to this many times.
constexpr int kAttempts = 64;

int OpenBeneath(int directory, const std::string& path, int flags) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) != 0 ? 0666 : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  for (int attempt = 1;; ++attempt) {
    const long fd = syscall(SYS_openat2, directory, path.c_str(), &how, sizeof(how));
    if (fd >= 0) return static_cast<int>(fd);
    if ((errno != EAGAIN && errno != EINTR) || attempt == kAttempts) return -1;
  }
}

std::string HandlePath(int fd) { return StrCat("/proc/self/fd/", fd); }

// Returns `status` with the caller's path in place of the path that `base_` was given.
Status WithCallersPath(const Status& status, const std::string& used, const std::string& path) {
  if (status.ok()) return status;
  Status renamed(status.code(), absl::StrReplaceAll(status.message(), {{used, path}}));
  status.ForEachPayload([&renamed](absl::string_view type, const absl::Cord& payload) {
    renamed.SetPayload(type, payload);
  });
  return renamed;
}

class RenamedWritableFile final : public WritableFile {
 public:
  RenamedWritableFile(std::unique_ptr<WritableFile> file, std::string used, std::string path)
      : file_(std::move(file)), used_(std::move(used)), path_(std::move(path)) {}
  Status Append(string_view data) override {
    return WithCallersPath(file_->Append(data), used_, path_);
  }
  Status Sync() override { return WithCallersPath(file_->Sync(), used_, path_); }
  Status Close() override { return WithCallersPath(file_->Close(), used_, path_); }

 private:
  const std::unique_ptr<WritableFile> file_;
  const std::string used_, path_;
};

class RenamedRandomAccessFile final : public RandomAccessFile {
 public:
  RenamedRandomAccessFile(std::unique_ptr<RandomAccessFile> file, std::string used,
                          std::string path)
      : file_(std::move(file)), used_(std::move(used)), path_(std::move(path)) {}
  int64_t size() const override { return file_->size(); }
  Status Read(int64_t offset, int64_t count, char* buffer) const override {
    return WithCallersPath(file_->Read(offset, count, buffer), used_, path_);
  }

 private:
  const std::unique_ptr<RandomAccessFile> file_;
  const std::string used_, path_;
};

std::string WithoutSlashAtEnd(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path == "/" ? "" : path;
}

std::string WithoutDoubleSlashes(const std::string& path) {
  std::string single;
  for (const char c : path) {
    if (c != '/' || single.empty() || single.back() != '/') single.push_back(c);
  }
  return single;
}

StatusOr<std::string> AbsolutePath(const std::string& path) {
  if (!path.empty() && path[0] == '/') return path;
  char* const folder = getcwd(nullptr, 0);
  if (folder == nullptr) return absl::ErrnoToStatus(errno, "the current directory");
  std::string absolute = StrCat(folder, "/", path);
  free(folder);
  return absolute;
}

}  // namespace

class RootedEnv::Handle {
 public:
  explicit Handle(int fd) : fd_(fd) {}
  Handle(Handle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    if (fd_ >= 0) close(fd_);
  }
  std::string path() const { return HandlePath(fd_); }

 private:
  int fd_;
};

struct RootedEnv::Entry {
  Handle parent;
  std::string path;
};

StatusOr<std::unique_ptr<RootedEnv>> RootedEnv::Create(Env& base, const std::string& root,
                                                       const std::string& flag) {
  const auto wrong = [&](const std::string& what) {
    return InvalidArgument(flag, ": '", root, "': ", what);
  };
  ASSIGN_OR_RETURN(const std::string absolute, AbsolutePath(root));
  const int fd = open(absolute.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return wrong(StrCat(std::strerror(errno), "; give a directory that exists"));
  const Handle owner(fd);
  char* const real = realpath(absolute.c_str(), nullptr);
  if (real == nullptr) return wrong(std::strerror(errno));
  std::vector<std::string> roots = {WithoutSlashAtEnd(WithoutDoubleSlashes(absolute)),
                                    WithoutSlashAtEnd(real)};
  free(real);
  const int probe = OpenBeneath(fd, ".", O_PATH);
  if (probe < 0) {
    return wrong(StrCat("openat2: ", std::strerror(errno),
                        "; keeping ops inside of a directory takes Linux 5.6, and a container "
                        "that allows the call"));
  }
  const Handle probe_handle(probe);
  if (!base.FileExists(probe_handle.path()))
    return wrong("there is no /proc, which this flag needs");
  const int kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (kept < 0) return wrong(std::strerror(errno));
  return std::unique_ptr<RootedEnv>(new RootedEnv(base, flag, std::move(roots), kept));
}

RootedEnv::~RootedEnv() { close(fd_); }

Status RootedEnv::OutsideError(const std::string& path) const {
  Status status = PermissionDenied("'", path, "' is outside of ", flag_, "=", roots_.front(),
                                   ": graphs on this task may use only files in that directory");
  status.SetPayload(kOutsidePayload, absl::Cord(path));
  return status;
}

bool IsOutsideFileRoot(const Status& status) {
  return status.GetPayload(kOutsidePayload).has_value();
}

StatusOr<std::string> RootedEnv::RelativeToRoot(const std::string& path) const {
  if (path.find('\0') != std::string::npos) return InvalidArgument("a path with a zero byte");
  if (path.empty() || path[0] != '/') return path;
  const std::string single = WithoutDoubleSlashes(path);
  for (const std::string& root : roots_) {
    if (single == root) return std::string(".");
    if (single.size() > root.size() && single.compare(0, root.size(), root) == 0 &&
        single[root.size()] == '/') {
      const std::string below = single.substr(root.size() + 1);
      return below.empty() ? std::string(".") : below;
    }
  }
  return OutsideError(path);
}

StatusOr<RootedEnv::Handle> RootedEnv::Resolve(const std::string& path, const std::string& below,
                                               int flags) const {
  const int fd = OpenBeneath(fd_, below, flags);
  if (fd >= 0) return Handle(fd);
  if (errno == EXDEV) return OutsideError(path);
  return absl::ErrnoToStatus(errno, StrCat("cannot open '", path, "'"));
}

StatusOr<RootedEnv::Entry> RootedEnv::ResolveParent(const std::string& path) const {
  ASSIGN_OR_RETURN(std::string below, RelativeToRoot(path));
  below = WithoutSlashAtEnd(std::move(below));
  const size_t slash = below.rfind('/');
  const std::string name = slash == std::string::npos ? below : below.substr(slash + 1);
  const std::string folder = slash == std::string::npos ? "." : below.substr(0, slash);
  // `path` must end in the name of an entry, not of a directory above it.
  if (name == "..") return OutsideError(path);
  ASSIGN_OR_RETURN(Handle parent, Resolve(path, folder, O_PATH | O_DIRECTORY));
  std::string used = StrCat(parent.path(), "/", name);
  return Entry{std::move(parent), std::move(used)};
}

Status RootedEnv::WithFile(const std::string& path,
                           const std::function<Status(const std::string&)>& use) const {
  ASSIGN_OR_RETURN(const std::string below, RelativeToRoot(path));
  ASSIGN_OR_RETURN(const Handle file, Resolve(path, below, O_PATH));
  return WithCallersPath(use(file.path()), file.path(), path);
}

Status RootedEnv::WithEntry(const std::string& path,
                            const std::function<Status(const std::string&)>& use) const {
  ASSIGN_OR_RETURN(const Entry entry, ResolveParent(path));
  return WithCallersPath(use(entry.path), entry.path, path);
}

StatusOr<std::unique_ptr<WritableFile>> RootedEnv::NewWritableFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string below, RelativeToRoot(path));
  // Creates the file if it does not exist. `base_` then opens this very file, checks its kind and
  // empties it.
  ASSIGN_OR_RETURN(const Handle made, Resolve(path, below, O_WRONLY | O_CREAT | O_NONBLOCK));
  const std::string used = made.path();
  auto file = base_.NewWritableFile(used);
  if (!file.ok()) return WithCallersPath(file.status(), used, path);
  return std::make_unique<RenamedWritableFile>(*std::move(file), used, path);
}

StatusOr<std::unique_ptr<RandomAccessFile>> RootedEnv::OpenFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string below, RelativeToRoot(path));
  ASSIGN_OR_RETURN(const Handle found, Resolve(path, below, O_PATH));
  const std::string used = found.path();
  auto file = base_.OpenFile(used);
  if (!file.ok()) return WithCallersPath(file.status(), used, path);
  return std::make_unique<RenamedRandomAccessFile>(*std::move(file), used, path);
}

StatusOr<std::string> RootedEnv::ReadFile(const std::string& path) {
  std::string contents;
  RETURN_IF_ERROR(WithFile(path, [&](const std::string& used) -> Status {
    ASSIGN_OR_RETURN(contents, base_.ReadFile(used));
    return OkStatus();
  }));
  return contents;
}

bool RootedEnv::FileExists(const std::string& path) {
  const std::string single = WithoutSlashAtEnd(WithoutDoubleSlashes(path));
  for (const std::string& root : roots_) {
    if (path.compare(0, 1, "/") == 0 && root.compare(0, single.size() + 1, single + "/") == 0) {
      return true;
    }
  }
  return WithFile(path, [](const std::string&) { return OkStatus(); }).ok();
}

StatusOr<std::vector<std::string>> RootedEnv::ListDirectory(const std::string& path) {
  std::vector<std::string> names;
  RETURN_IF_ERROR(WithFile(path, [&](const std::string& used) -> Status {
    ASSIGN_OR_RETURN(names, base_.ListDirectory(used));
    return OkStatus();
  }));
  return names;
}

Status RootedEnv::CreateDirectories(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string below, RelativeToRoot(path));
  for (size_t end = below.find('/');; end = below.find('/', end + 1)) {
    const std::string prefix = below.substr(0, end);
    const auto found = Resolve(path, prefix, O_PATH | O_DIRECTORY);
    if (!found.ok() && !absl::IsNotFound(found.status())) return found.status();
    if (!found.ok()) {
      RETURN_IF_ERROR(WithEntry(
          prefix, [this](const std::string& used) { return base_.CreateDirectories(used); }));
    }
    if (end == std::string::npos) return OkStatus();
  }
}

Status RootedEnv::Rename(const std::string& from, const std::string& to) {
  return WithEntry(from, [&](const std::string& used_from) {
    return WithEntry(to, [&](const std::string& used_to) {  // NOLINT
      return base_.Rename(used_from, used_to);
    });
  });
}

Status RootedEnv::RemoveFile(const std::string& path) {
  return WithEntry(path, [this](const std::string& used) { return base_.RemoveFile(used); });
}

Status RootedEnv::RemoveDirectory(const std::string& path) {
  return WithEntry(path, [this](const std::string& used) { return base_.RemoveDirectory(used); });
}

Status RootedEnv::SyncDirectory(const std::string& path) {
  return WithFile(path, [this](const std::string& used) { return base_.SyncDirectory(used); });
}

}  // namespace penstock
